"""Short symbols for what expressions repeat, as textbooks write them.

``s_1 = sin q_1``, ``c_12 = cos(q_1 + q_2)``, ``d_k = |B - A|`` of the straight pieces of muscles.
"""

from __future__ import annotations

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.normal_form import is_polynomial


class Abbreviations:
    """Replaces sines, cosines and square roots by symbols, the same ones every time.

    Attributes:
        waves: Symbol to sine or cosine.
        distances: Symbol to the root it stands for, its inner waves replaced.
        latex: Symbol to its name in LaTeX.
    """

    def __init__(self) -> None:
        self.waves: dict[Expr, Expr] = {}
        self.distances: dict[Expr, Expr] = {}
        self.latex: dict[Expr, str] = {}
        self._of_wave: dict[Expr, Expr] = {}
        self._of_square: dict[Expr, Expr] = {}

    def apply(self, expression: Expr) -> Expr:
        """Return an expression with symbols instead of sines, cosines and roots of expressions."""
        expression = sp.sympify(expression)
        roots = [
            power
            for power in sp.ordered(expression.atoms(sp.Pow))
            if power.exp.is_Rational and power.exp.q == 2 and not power.base.is_number
        ]
        for power in roots:
            if power.base not in self._of_square:
                symbol = sp.Symbol(f"d_{len(self.distances) + 1}", positive=True)
                self._of_square[power.base] = symbol
                self.distances[symbol] = sp.sqrt(self._without_waves(power.base))
        shorter = expression.xreplace(
            {power: self._of_square[power.base] ** (2 * power.exp) for power in roots}
        )
        return self._without_waves(shorter)

    def _without_waves(self, expression: Expr) -> Expr:
        for wave in sp.ordered(expression.atoms(sp.sin, sp.cos)):
            if wave not in self._of_wave and is_polynomial(wave):
                symbol = self._wave_symbol(wave)
                self._of_wave[wave] = symbol
                self.waves[symbol] = wave
        return expression.xreplace(self._of_wave)

    def _wave_symbol(self, wave: Expr) -> Expr:
        letter = "s" if isinstance(wave, sp.sin) else "c"
        terms = []
        for term in sp.Add.make_args(wave.args[0]):
            count, angle = term.as_coeff_Mul()
            terms.append((int(str(angle).partition("_")[2]), int(count)))
        terms.sort(key=lambda item: (item[1] < 0, item[0]))
        wide = any(number > 9 for number, _ in terms)
        name, latex = "", ""
        for number, count in terms:
            sign = "-" if count < 0 else ("+" if latex and (wide or abs(count) > 1) else "")
            factor = f"{abs(count)}\\cdot " if abs(count) > 1 else ""
            latex += f"{sign}{factor}{number}"
            part = f"{abs(count)}x{number}" if abs(count) > 1 else str(number)
            name += ("m" if count < 0 else "_" if name and (wide or abs(count) > 1) else "") + part
        symbol = sp.Symbol(f"{letter}_{name}", real=True)
        self.latex[symbol] = f"{letter}_{{{latex}}}"
        return symbol
