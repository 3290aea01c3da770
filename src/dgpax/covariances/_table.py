"""Dispatch on pairs of types, with an error that teaches."""

from __future__ import annotations

from collections.abc import Callable

import plum

from ..errors import MissingRuleError


class RuleTable:
    """One question, answered by rules for pairs of types. Anybody may add a rule, from outside the package too."""

    def __init__(self, name: str, question: str):
        self.name = name
        self.__doc__ = question
        self.pairs: list[tuple[type, ...]] = []
        self._dispatcher = plum.Dispatcher()
        self._function: plum.Function | None = None

    def register(self, *types: type) -> Callable[[Callable], Callable]:
        """`@Kuu.register(MyInducing, RBF)` above a function of (inducing, kernel)."""

        def decorate(rule: Callable) -> Callable:
            def typed(*arguments):
                return rule(*arguments)

            typed.__name__ = typed.__qualname__ = self.name
            extra = (object,) * (rule.__code__.co_argcount - len(types))
            self._function = self._dispatcher.multi((*types, *extra))(typed)
            self.pairs.append(types)
            return rule

        return decorate

    def __call__(self, *arguments):
        try:
            if self._function is None:
                raise plum.NotFoundLookupError(self.name, arguments, [])
            return self._function(*arguments)
        except plum.NotFoundLookupError as error:
            raise MissingRuleError(self._explain(arguments)) from error

    def _explain(self, arguments) -> str:
        wanted = ", ".join(type(argument).__name__ for argument in arguments[:2])
        known = "\n".join("  " + ", ".join(kind.__name__ for kind in pair) for pair in self.pairs)
        return (
            f"{self.name} has no rule for ({wanted}). Rules exist for:\n{known}\n"
            f"Add one:\n  @{self.name}.register({wanted})\n  def _(inducing, kernel{', x' * (self.name == 'Kuf')}): ..."
        )
