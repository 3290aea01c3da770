"""Dispatch on types, with an error that teaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import MissingRuleError


class RuleTable:
    """One question, answered by rules for types or pairs of them. Anybody may add one, from outside the package too."""

    def __init__(self, name: str, question: str, arguments: str):
        self.name = name
        self.arguments = arguments
        self.__doc__ = question
        self.known: list[tuple[type, ...]] = []
        self._waiting: list[tuple[tuple[type, ...], Callable]] = []
        self._dispatcher: Any = None
        self._rule_for: Callable | None = None

    def register(self, *types: type) -> Callable[[Callable], Callable]:
        """`@Kuu.register(MyInducing, RBF)` above what answers for these, called with all arguments."""

        def decorate(rule: Callable) -> Callable:
            self._waiting.append((types, rule))
            self.known.append(types)
            return rule

        return decorate

    def __call__(self, *arguments):
        import plum

        if self._waiting:
            self._dispatcher = self._dispatcher or plum.Dispatcher()
            for types, rule in self._waiting:
                self._rule_for = self._dispatcher.multi(types)(_always(rule))
            self._waiting.clear()
        asked = arguments[: len(self.known[0])]
        try:
            rule = self._rule_for(*asked)  # pyright: ignore[reportOptionalCall]
        except plum.NotFoundLookupError as error:
            raise MissingRuleError(self._explain(asked)) from error
        return rule(*arguments)

    def _explain(self, asked: tuple) -> str:
        wanted = ", ".join(type(value).__name__ for value in asked)
        known = "\n".join(f"  {', '.join(kind.__name__ for kind in types)}" for types in self.known)
        return (
            f"{self.name} has no rule for ({wanted}). Rules exist for:\n{known}\n"
            f"Add one:\n  @{self.name}.register({wanted})\n  def _({self.arguments}): ..."
        )


def _always(rule: Callable) -> Callable:
    def rule_for(*values):
        return rule

    return rule_for
