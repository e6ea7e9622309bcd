from dataclasses import dataclass

from fedsbc.lazy import lazy

CALLS: list[int] = []


@dataclass(frozen=True)
class Square:
    side: int

    @lazy
    def area(self) -> int:
        """The area."""
        CALLS.append(self.side)
        return self.side**2


def test_a_value_is_computed_once_for_each_instance() -> None:
    CALLS.clear()
    small, large = Square(2), Square(3)
    assert [small.area, small.area, large.area, small.area] == [4, 4, 9, 4]
    assert CALLS == [2, 3]


def test_the_class_has_the_documentation_and_equality_is_that_of_the_fields() -> None:
    small = Square(2)
    assert small.area == 4
    assert small == Square(2)
    assert Square.area.__doc__ == "The area."
