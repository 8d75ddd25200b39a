"""Moving windows in memory: exact counts, exact waits, and no more names than there is room for."""

from forecourt.server.window import MovingWindows, Rate


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_any_window_holds_its_calls_and_not_one_more() -> None:
    clock = Clock()
    windows, asked = MovingWindows(clock), [(Rate(3, 10), "one")]
    for second in (0, 4, 8):
        clock.now = 1000.0 + second
        assert windows.hit(asked) == {}
    clock.now = 1009.0
    assert windows.hit(asked) == {"one": 1.0}
    clock.now = 1010.0
    assert windows.hit(asked) == {}
    # The window moves: the call of second 4 is in the way now.
    assert windows.hit(asked) == {"one": 4.0}


def test_a_call_that_one_window_refuses_counts_in_none() -> None:
    clock = Clock()
    windows = MovingWindows(clock)
    both = [(Rate(5, 10), "all"), (Rate(1, 60), "lead")]
    assert windows.hit(both) == {}
    for _ in range(9):
        assert windows.hit(both) == {"lead": 60.0}
    for _ in range(4):
        assert windows.hit(both[:1]) == {}
    assert windows.hit(both) == {"all": 10.0, "lead": 60.0}


def test_names_whose_windows_are_over_are_forgotten_as_others_come() -> None:
    clock = Clock()
    windows = MovingWindows(clock)
    for number in range(500):
        windows.hit([(Rate(1, 10), f"early {number}")])
    clock.now += 11
    for number in range(200):
        windows.hit([(Rate(1, 10), f"late {number}")])
    assert len(windows) == 200


def test_there_are_never_more_names_than_there_is_room_for() -> None:
    windows = MovingWindows(Clock(), names=100)
    for number in range(1000):
        windows.hit([(Rate(5, 60), f"{number}"), (Rate(5, 60), "always here")])
        assert len(windows) <= 100
    # Whoever goes on calling is not the one that is forgotten.
    assert windows.hit([(Rate(5, 60), "always here")]) != {}
