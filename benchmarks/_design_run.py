"""One run of dgpax in sequential design: `python -m benchmarks._design_run learn branin "deep alc" 0 40`."""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np

import dgpax
from dgpax.design import Study

from ._design_task import Problem
from .design import AT_ONCE, FIRST, Job

WORDS = {"deep": {"inference": "variational", "num_layers": 2}, "exact": {"inference": "exact"}}


def studied(study: Study, problem: Problem, job: Job) -> np.ndarray:
    """All runs of a study."""
    first = problem.hypercube(min(FIRST, job.runs), job.seed)
    study.tell(first, problem.of(first))
    while study.num_runs < job.runs:
        rows = study.space.encoded(study.ask(min(AT_ONCE, job.runs - study.num_runs)))
        study.tell(rows, problem.of(rows))
    return study.x


def measured(job: Job) -> dict[str, float]:
    """The error or regret in the end, and CPU seconds."""
    problem, began = Problem.named(job.function), time.process_time()
    if job.method == "random":
        x = np.random.default_rng(job.seed).uniform(size=(job.runs, problem.num_inputs))
        x[:FIRST] = problem.hypercube(FIRST, job.seed)[: job.runs]
        return {"regret": float(problem.of(x).min()) - problem.smallest, "cpu_seconds": time.process_time() - began}
    depth, criterion = job.method.split()
    words = WORDS[depth] | {"seed": job.seed}
    box = [(0.0, 1.0)] * problem.num_inputs
    if criterion == "hypercube":
        x = problem.hypercube(job.runs, job.seed)
    else:
        x = studied(Study(box, criterion, num_initial=FIRST, **words), problem, job)
    if job.part == "optimise":
        return {"regret": float(problem.of(x).min()) - problem.smallest, "cpu_seconds": time.process_time() - began}
    judge = Study(box, **words)  # a fit that begins anew, the same for all ways in which runs were chosen
    judge.tell(x, problem.of(x))
    fitted = judge.fitted()
    new, truth = problem.test()
    mean = np.asarray(dgpax.predict_latent(fitted, new).mean)[:, 0]
    return {"rmse": float(np.sqrt(np.mean((mean - truth) ** 2))), "cpu_seconds": time.process_time() - began}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    part, function, method, seed, runs = sys.argv[1:]
    print(json.dumps(measured(Job(part, function, method, int(seed), int(runs)))))
