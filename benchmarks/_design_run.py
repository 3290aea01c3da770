"""One run of dgpax in sequential design: `python -m benchmarks._design_run learn branin "deep alc" 0 40`."""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np

import dgpax
from dgpax.design import Study
from dgpax.recipes import Recipe, Rows, train

from ._design_task import Problem
from .design import AT_ONCE, FIRST, Job

WORDS = {"deep": {"inference": "variational", "num_layers": 2}, "exact": {"inference": "exact"}}


def measured(job: Job) -> dict[str, float]:
    """The error or regret in the end, and CPU seconds."""
    problem, began = Problem.named(job.function), time.process_time()
    if job.method == "random":
        x = np.random.default_rng(job.seed).uniform(size=(job.runs, problem.num_inputs))
        x[:FIRST] = problem.hypercube(FIRST, job.seed)[: job.runs]
        return {"regret": float(problem.of(x).min()) - problem.smallest, "cpu_seconds": time.process_time() - began}
    depth, criterion = job.method.split()
    words = WORDS[depth] | {"seed": job.seed, "progress": False}
    if criterion == "hypercube":
        x = problem.hypercube(job.runs, job.seed)
        fitted = train(Recipe(**words), Rows(x, problem.of(x)[:, None]))
    else:
        study = Study([(0.0, 1.0)] * problem.num_inputs, criterion, num_initial=FIRST, **words)
        study.tell(rows := problem.hypercube(min(FIRST, job.runs), job.seed), problem.of(rows))
        while study.num_runs < job.runs:
            asked = study.ask(min(AT_ONCE, job.runs - study.num_runs))
            study.tell(asked, problem.of(study.space.encoded(asked)))
        if job.part == "optimise":
            regret = float(study.y.min()) - problem.smallest
            return {"regret": regret, "cpu_seconds": time.process_time() - began}
        fitted = train(Recipe(**words), Rows(study.x, study.y))
    new, truth = problem.test()
    mean = np.asarray(dgpax.predict_latent(fitted, new).mean)[:, 0]
    return {"rmse": float(np.sqrt(np.mean((mean - truth) ** 2))), "cpu_seconds": time.process_time() - began}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    part, function, method, seed, runs = sys.argv[1:]
    print(json.dumps(measured(Job(part, function, method, int(seed), int(runs)))))
