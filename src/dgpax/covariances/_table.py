"""Dispatch on pairs of types, with an error that teaches."""

from __future__ import annotations

from collections.abc import Callable

import plum

from ..errors import MissingRuleError


class RuleTable:
    """One question, answered by rules for pairs of types. Anybody may add a rule, from outside the package too."""

    def __init__(self, name: str, question: str, arguments: str):
        self.name = name
        self.arguments = arguments
        self.__doc__ = question
        self.pairs: list[tuple[type, type]] = []
        self._dispatcher = plum.Dispatcher()
        self._rule_for: Callable | None = None

    def register(self, first: type, second: type) -> Callable[[Callable], Callable]:
        """`@Kuu.register(MyInducing, RBF)` above the function that answers for this pair."""

        def decorate(rule: Callable) -> Callable:
            def rule_for(first, second):
                return rule

            self._rule_for = self._dispatcher.multi((first, second))(rule_for)
            self.pairs.append((first, second))
            return rule

        return decorate

    def __call__(self, first, second, *rest):
        try:
            rule = self._rule_for(first, second)  # pyright: ignore[reportOptionalCall]
        except plum.NotFoundLookupError as error:
            raise MissingRuleError(self._explain(first, second)) from error
        return rule(first, second, *rest)

    def _explain(self, first, second) -> str:
        wanted = f"{type(first).__name__}, {type(second).__name__}"
        known = "\n".join(f"  {a.__name__}, {b.__name__}" for a, b in self.pairs)
        return (
            f"{self.name} has no rule for ({wanted}). Rules exist for:\n{known}\n"
            f"Add one:\n  @{self.name}.register({wanted})\n  def _({self.arguments}): ..."
        )
