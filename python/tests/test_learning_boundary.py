"""What environments refuse, by the key that the user wrote, and what they convert: training never fails silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.error import ResetNeeded  # noqa: E402

import ropewalk.learning  # noqa: E402
from ropewalk import ActionError, ConfigError  # noqa: E402
from ropewalk.learning.environments import MultipathEnv, SinglePathEnv  # noqa: E402
from ropewalk.learning.vector import MultipathVectorEnv, SinglePathVectorEnv  # noqa: E402

LINK: dict[str, Any] = {"rate_mbps": 10, "rtt_ms": 40}
SHORT: dict[str, Any] = {"duration_s": 0.3}
nan, inf = float("nan"), float("inf")


def single(**keys: Any) -> Any:
    env = SinglePathEnv(**{**SHORT, **keys})
    env.reset(seed=1)
    return env


def multi() -> Any:
    env = MultipathEnv(duration_s=0.3)
    env.reset(seed=1)
    return env


def vector(**keys: Any) -> Any:
    env = MultipathVectorEnv(4, **{**SHORT, **keys})
    env.reset(seed=1)
    return env


def agents() -> Any:
    pytest.importorskip("pettingzoo")
    env = ropewalk.learning.parallel_env(2, duration_s=0.3)
    env.reset(seed=1)
    return env


def to_the_end(env: Any) -> Any:
    while not env.step(np.zeros(1))[3]:
        pass
    return env


def one_nan() -> Any:
    actions = np.zeros((4, 2))
    actions[2, 1] = nan
    return actions


def after_steps(count: int) -> Any:
    env = single()
    for _ in range(count):
        env.step(np.zeros(1))
    return env.step([nan])


ACTIONS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: single().step([nan]), ActionError, "^path 0, step 0: the action is NaN; it has to be a finite number$"),
    (lambda: after_steps(20), ActionError, "^path 0, step 20: the action is NaN"),
    (lambda: single().step(np.array([inf])), ActionError, "the action is inf"),
    (lambda: single().step(np.array([1e300])), ActionError, "the action is inf"),
    (lambda: multi().step([0, -inf]), ActionError, "^path 1, step 0: the action is -inf"),
    (lambda: vector().step(one_nan()), ActionError, "^world 2, path 1, step 0: the action is NaN"),
    (lambda: agents().step({"flow_0": [0], "flow_1": [nan]}), ActionError, "^flow_1, path 0, step 0: the action is"),
    (
        lambda: agents().step({"flow_0": [0], "flow_2": [0]}),
        ActionError,
        "no agent is called 'flow_2'; agents are flow_0",
    ),
    (
        lambda: agents().step({"flow_0": [0], "flow_1": 0}),
        ActionError,
        r"of flow_1 has the shape \(\); it has to be \(1,\)",
    ),
    (lambda: single().step(0.0), ActionError, r"the action has the shape \(\); it has to be \(1,\)"),
    (lambda: single().step([[0.0]]), ActionError, r"has the shape \(1, 1\); it has to be \(1,\)"),
    (lambda: single().step(None), ActionError, "has the type object; it has to be numbers"),
    (lambda: single().step(["0"]), ActionError, "has the type <U1"),
    (lambda: single().step([True]), ActionError, "has the type bool"),
    (lambda: vector().step(np.zeros(8)), ActionError, r"has the shape \(8,\); it has to be \(4, 2\)"),
    (lambda: vector().step(np.zeros((2, 4))), ActionError, r"has the shape \(2, 4\); it has to be \(4, 2\)"),
    (lambda: vector().step(np.zeros((2, 2, 2))), ActionError, r"has the shape \(2, 2, 2\)"),
    (lambda: vector().step([[0, 0], [0]]), ActionError, "has rows of different lengths"),
]

ORDER: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: SinglePathEnv().step(np.zeros(1)), ResetNeeded, "the first step comes after a reset"),
    (lambda: to_the_end(single()).step(np.zeros(1)), ResetNeeded, "the episode is over: call reset"),
    (lambda: SinglePathVectorEnv(2).step(np.zeros((2, 1))), ResetNeeded, "reset these worlds first: 0, 1"),
    (lambda: ropewalk.learning.parallel_env(2).step({}), ResetNeeded, "call reset"),
]

RESETS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: single().reset(seed=1.7), ValueError, "seed: a whole number is expected, not 1.7"),
    (lambda: single().reset(seed=-1), ValueError, "seed: -1 is not from 0"),
    (lambda: vector().reset(seed=[1, 2]), ValueError, "seed: 2 seeds for 4 worlds"),
    (lambda: vector().reset(seed=[1, 2, 3, 4.5]), ValueError, "seed: a whole number is expected, not 4.5"),
    (
        lambda: single().reset(options={"path": []}),
        ConfigError,
        "options: no option is called 'path'; did you mean 'paths'",
    ),
    (
        lambda: single().reset(options={"duration_s": 1}),
        ConfigError,
        "options: no option is called 'duration_s'; known: pa",
    ),
    (lambda: single().reset(options=["paths"]), ConfigError, "options: a dictionary is expected, not list"),
    (
        lambda: single().reset(options={"rivals": {"counts": 1}}),
        ConfigError,
        "rivals.counts: no key is called `counts`",
    ),
    (lambda: vector().reset(options={"reset_mask": [True]}), ValueError, "reset_mask: 4 truth values are expected"),
    (lambda: agents().reset(options={"path": []}), ConfigError, "options: no option is called 'path'"),
    (lambda: single().reset(options={"paths": [LINK, LINK]}), ConfigError, "paths: 2 paths for a flow over one path"),
]


def keys(**keys: Any) -> Callable[[], Any]:
    return lambda: SinglePathEnv(**keys)


def link(**more: Any) -> Callable[[], Any]:
    path: Any = {**LINK, **more}
    return lambda: SinglePathEnv([path])


CONFIGURATIONS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (keys(observation="aurorra"), ConfigError, "observation: `aurorra` is neither a feature nor a preset"),
    (keys(observatoin="aurora"), TypeError, "keyword argument 'observatoin'; did you mean 'observation'"),
    (lambda: vector(autoreset="SameStep"), TypeError, "unexpected keyword argument 'autoreset'; known: observation"),
    (keys(action="rate(5, 1)"), ConfigError, r"action: `rate\(5, 1\)` is not an action"),
    (keys(interval="fast"), ConfigError, "interval: `fast` is not an interval; intervals are `rtt`, and times"),
    (keys(interval=0.01), ConfigError, "interval: a text is expected, not the number `0.01`"),
    (keys(history="10"), ConfigError, 'history: a whole number, 0 or more, is expected, not the text "10"'),
    (keys(history=1.5), ConfigError, "history: a whole number, 0 or more, is expected, not the number `1.5`"),
    (keys(history=True), ConfigError, "history: a whole number, 0 or more, is expected, not `true`"),
    (keys(duration_s=nan), ConfigError, "duration_s: nan is not a finite number"),
    (keys(duration_s="long"), ConfigError, 'duration_s: a number is expected, not the text "long"'),
    (keys(reward={}), ConfigError, "reward: no terms; give at least one"),
    (keys(reward={"throughput": 1.0}), ConfigError, "reward: `throughput` is neither a reward"),
    (keys(reward={"throughput_mbps": inf}), ConfigError, "reward.throughput_mbps: inf is not a finite number"),
    (
        keys(reward=lambda summary: 0.0),
        ConfigError,
        "reward: numbers, texts, lists and tables are expected, not function",
    ),
    (keys(render_mode="human"), ValueError, "render_mode: 'human' is none of None, 'ansi' and 'rgb_array'"),
    (keys(paths=[]), ConfigError, "paths: 0 paths"),
    (keys(paths=LINK), ConfigError, "paths: a list is expected, not a table"),
    (keys(paths=[LINK, LINK]), ConfigError, "paths: 2 paths for a flow over one path"),
    (keys(paths=[{"rate_mbps": 10}]), ConfigError, r"paths\[0\].rtt_ms: is missing"),
    (
        keys(paths=[{"rtt_ms": 20}]),
        ConfigError,
        r"paths\[0\].rate_mbps: is missing: a path has `rate_mbps`, or `traces`",
    ),
    (keys(rivals={"algorithm": "cubic"}), ConfigError, "rivals.algorithm: no key is called `algorithm`; did you mean"),
    (keys(rivals={"count": 1.5}), ConfigError, "rivals.count: 1.5: a whole number is expected, or a range"),
    (keys(rivals={"algorithms": "bbr"}), ConfigError, 'rivals.algorithms: a list is expected, not the text "bbr"'),
    (link(rtt=20), ConfigError, r"paths\[0\].rtt: no key is called `rtt`; did you mean `rtt_ms`"),
    (link(rtt_ms=[20, 30, 40]), ConfigError, r"paths\[0\].rtt_ms: \[20,30,40\]: a number is expected, or a range"),
    (link(rtt_ms="20ms"), ConfigError, r'paths\[0\].rtt_ms: "20ms": a number is expected, or a range'),
    (link(rtt_ms=[20, object()]), ConfigError, r"paths\[0\].rtt_ms\[1\]: .* not object"),
    (link(traces=["none.txt"]), ConfigError, r"paths\[0\].traces: trace 0: cannot read"),
    (lambda: MultipathEnv(decides="weight"), ConfigError, "decides: 'weight' is not .*; did you mean 'weights'"),  # type: ignore[arg-type]
    (lambda: MultipathEnv(decides="single"), ConfigError, "decides: 'single' is not .*; known: subflows, weights"),  # type: ignore[arg-type]
    (lambda: MultipathVectorEnv(0), ConfigError, "num_envs: 0; at least 1"),
    (lambda: MultipathVectorEnv(2, threads=1.5), ConfigError, "threads: a whole number is expected, not 1.5"),  # type: ignore[arg-type]
    (lambda: MultipathVectorEnv(2, autoreset_mode="Never"), ValueError, "'Never' is not a valid AutoresetMode"),
    (lambda: ropewalk.learning.parallel_env(0), ConfigError, "agents: 0; at least 1"),
    (lambda: ropewalk.learning.parallel_env(65), ConfigError, "agents: 65: 1 to 64 are allowed"),
    (lambda: ropewalk.learning.parallel_env(2, render_mode="human"), ValueError, "render_mode: 'human' is none of"),
]


@pytest.mark.parametrize(("call", "error", "message"), [*ACTIONS, *ORDER, *RESETS, *CONFIGURATIONS])
def test_a_wrong_input_is_refused_with_its_key(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert caught.type is error


def test_an_environment_goes_on_after_a_refused_action() -> None:
    (one, other), returns = (single(), single()), []
    with pytest.raises(ActionError):
        one.step([nan])
    for env in (one, other):
        returns.append([env.step([0.5])[1] for _ in range(10)])
    assert returns[0] == returns[1]


def test_harmless_values_are_converted() -> None:
    expected = SinglePathEnv(
        [{"rate_mbps": [10, 10], "rtt_ms": [40, 40]}], rivals={"count": [1, 1]}, history=3, **SHORT
    )
    given = SinglePathEnv(
        [{"rate_mbps": np.float32(10), "rtt_ms": np.array([40, 40])}],
        rivals={"count": np.int64(1)},
        history=np.int64(3),
        duration_s=np.float64(0.3),
    )
    seen = []
    for env, seed, action in ((expected, 5, np.array([1], np.float32)), (given, np.int64(5), [1])):
        observation, _ = env.reset(seed=seed)
        seen.append((observation, env.step(action)[:2]))
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    np.testing.assert_array_equal(seen[0][1][0], seen[1][1][0])
    assert seen[0][1][1] == seen[1][1][1]


def test_a_seed_of_numpy_is_that_of_python() -> None:
    first, second = (SinglePathVectorEnv(2, **SHORT).reset(seed=seed)[0] for seed in (7, np.int64(7)))
    np.testing.assert_array_equal(first, second)


def test_what_has_not_been_measured_is_not_in_the_infos() -> None:
    """The convention of Gymnasium: a dictionary has no such key, an array's mask says so."""
    link: list[Any] = [{"rate_mbps": 10, "rtt_ms": 1000}]
    env, worlds = SinglePathEnv(link), SinglePathVectorEnv(1, link)
    (_, info), (_, infos) = env.reset(seed=1), worlds.reset(seed=1)
    assert info["time_s"] < 2  # one interval after the handshake
    assert "rtt_ms" not in info
    assert (infos["_rtt_ms"][0], infos["_time_s"][0]) == (False, True)
    assert np.isnan(infos["rtt_ms"][0])
    for _ in range(20):
        info, infos = env.step([0.0])[4], worlds.step([[0.0]])[4]  # type: ignore[arg-type]
    assert info["rtt_ms"] == infos["rtt_ms"][0] >= 1000
    pytest.importorskip("pettingzoo")
    _, by_agent = ropewalk.learning.parallel_env(1, link).reset(seed=1)
    assert by_agent["flow_0"]["rtt_ms"] == inf
    assert infos["_rtt_ms"][0]
