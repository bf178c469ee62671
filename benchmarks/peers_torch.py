# pyright: basic, reportMissingImports=false
"""The peers' side of `peers.py`, which starts it with the interpreter of their environment: no maxplore, no JAX here.

SAC with small batches is Stable-Baselines3's; the work of the paper's sizes is plain PyTorch, eager, written for speed:
members batched with `baddbmm`, no gradients that nobody needs, Adam in its fastest form.
"""

import copy
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import peers
from peers import ACTION, ROWS, STATE

try:
    import gymnasium
    import numpy as np
    import stable_baselines3
    import torch
    from stable_baselines3.common.logger import Logger
    from torch.nn import functional
except ImportError as missing:
    told = f"has no module {missing.name}, expected torch and stable-baselines3: peers.py --help has the pip commands"
    print(json.dumps({"error": told}), flush=True)
    sys.exit(1)

MEMBERS, DEPTH, WIDTH, BATCH, ACTORS = 32, 4, 512, 256, 128
LOG_VARIANCE, TEMPERATURE = (-5.0, -1.0), 0.1
SAC_BATCH, SAC_WIDTH, DISCOUNT, TAU, ALPHA, PENALTY, LOG_STD = 4096, 256, 0.99, 0.005, 0.02, 1e-3, (-20.0, 2.0)
CLIP, RATE = 5.0, 1e-3
DOES = {
    "sb3_fixed": "draws a batch; steps twin Q, actor; moves the targets of both Q",
    "sb3_automatic": "draws a batch; steps twin Q, actor, temperature; moves the targets of both Q",
    "sac_paper": "draws a batch; steps twin Q, V, actor; moves the target of V",
    "gradient": "draws a batch for each member; a step of Adam of all members on the negative log-likelihood",
    "imagined": "random actions; forecasts of all members; next states; Jensen-Renyi divergence, lambda 0.1",
}
"""Of one unit."""


class Spaces(gymnasium.Env):
    """An environment that is never stepped: only its spaces count."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (STATE,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTION,), np.float32)


def baselines(temperature: float | str) -> tuple[Callable[[int], Any], int]:
    """Stable-Baselines3's SAC with a full replay, and how many parameters it learns."""
    model = stable_baselines3.SAC("MlpPolicy", Spaces(), buffer_size=ROWS, ent_coef=temperature, device="cpu")
    model.set_logger(Logger(None, []))
    replay, numbers = model.replay_buffer, np.random.default_rng(0)
    for name in ("observations", "actions", "next_observations", "rewards", "dones"):
        rows = getattr(replay, name)
        rows[:] = 0.1 * numbers.normal(size=rows.shape)
    replay.full = True
    learned = [*model.actor.parameters(), *model.critic.parameters()]
    count = sum(x.numel() for x in learned) + (1 if model.log_ent_coef is not None else 0)
    return lambda units: model.train(gradient_steps=units, batch_size=256), count


def quickest_adam(parameters: list[Any]) -> tuple[Any, str]:
    """Adam in whichever of PyTorch's two fast forms steps these parameters sooner, here and now."""
    tried: dict[str, float] = {}
    copies = [x.detach().clone().requires_grad_() for x in parameters]
    for copied in copies:
        copied.grad = torch.full_like(copied, 1e-3)
    for form in ("fused", "foreach"):
        optimiser, taken = torch.optim.Adam(copies, lr=RATE, **{form: True}), []
        for _ in range(6):
            begin = time.perf_counter()
            optimiser.step()
            taken.append(time.perf_counter() - begin)
        tried[form] = statistics.median(taken[1:])
    best = min(tried, key=tried.__getitem__)
    return torch.optim.Adam(parameters, lr=RATE, **{best: True}), f"Adam, {best}"


class Ensemble:
    """The paper's members, batched, with the statistics of D."""

    def __init__(self) -> None:
        self.states, self.actions = torch.randn(ROWS, STATE), torch.randn(ROWS, ACTION)
        self.next_states = torch.randn(ROWS, STATE)
        delta = self.next_states - self.states
        self.state, self.action, self.delta = ((x.mean(0), x.std(0)) for x in (self.states, self.actions, delta))
        both = torch.cat([self.states, self.next_states])
        low, high = both.amin(0), both.amax(0)
        self.low, self.high = low - (high - low), high + (high - low)
        self.weights, self.biases = [], []
        for a, b in pairwise([STATE + ACTION, *[WIDTH] * DEPTH, 2 * STATE]):
            weight = torch.randn(MEMBERS, a, b) * math.sqrt(2 / (a + b))
            self.weights.append(weight.requires_grad_())
            self.biases.append(torch.zeros(MEMBERS, 1, b, requires_grad=True))
        self.parameters = self.weights + self.biases
        self.optimiser, self.form = quickest_adam(self.parameters)

    def forward(self, states: Any, actions: Any) -> tuple[Any, Any]:
        """Mean and log-variance by every member of its own rows, `[members, batch, dims]`."""
        x = torch.cat([normalized(states, self.state), normalized(actions, self.action)], -1)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = functional.silu(torch.baddbmm(bias, x, weight))
        mean, raw = torch.baddbmm(self.biases[-1], x, self.weights[-1]).chunk(2, -1)
        low, high = LOG_VARIANCE
        return mean, low + (high - low) * torch.sigmoid(raw)

    def learn(self, units: int) -> None:
        """Gradient steps of every member, each on its own batch."""
        order = torch.randint(ROWS, (units, MEMBERS, BATCH))
        for rows in order:
            states = self.states[rows]
            target = normalized(self.next_states[rows] - states, self.delta)
            mean, log_variance = self.forward(states, self.actions[rows])
            nll = 0.5 * ((target - mean) ** 2 * torch.exp(-log_variance) + log_variance + math.log(2 * math.pi))
            loss = nll.mean((1, 2)).sum()
            self.optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(self.parameters, CLIP)
            self.optimiser.step()

    @torch.no_grad()
    def imagine(self, units: int) -> Any:
        """Steps of all actors, each with a member of its own draw, and what they pay."""
        states, paid = torch.zeros(ACTORS, STATE), []
        everyone = torch.arange(ACTORS)
        for _ in range(units):
            actions = 2 * torch.rand(ACTORS, ACTION) - 1
            mean, log_variance = self.forward(states.expand(MEMBERS, -1, -1), actions.expand(MEMBERS, -1, -1))
            variance, member = torch.exp(log_variance), torch.randint(MEMBERS, (ACTORS,))
            own = mean[member, everyone], variance[member, everyone]
            drawn = own[0] + torch.sqrt(own[1]) * torch.randn(ACTORS, STATE)
            drawn = states + self.delta[0] + self.delta[1] * drawn
            drawn = torch.where(torch.isfinite(drawn), drawn, states)
            upper = math.exp(LOG_VARIANCE[1])
            paid.append(jensen_renyi(mean, (1 - TEMPERATURE) * upper + TEMPERATURE * variance))
            states = torch.clamp(drawn, torch.minimum(self.low, states), torch.maximum(self.high, states))
        return torch.stack(paid)


def normalized(values: Any, statistics: tuple[Any, Any]) -> Any:
    return (values - statistics[0]) / statistics[1]


def jensen_renyi(mean: Any, variance: Any) -> Any:
    """Eq. 10 for `[members, batch, dims]`, every pair of members taken once."""
    members = mean.shape[0]
    one, two = torch.triu_indices(members, members)
    width = variance[one] + variance[two]
    exponent = -0.5 * ((mean[one] - mean[two]) ** 2 / width + torch.log(width)).sum(-1)
    exponent = exponent + torch.where(one == two, 0.0, math.log(2.0))[:, None]  # a pair stands for two
    entropy = 0.5 * torch.log(2 * variance).sum(-1).mean(0)
    return 2 * math.log(members) - torch.logsumexp(exponent, 0) - entropy


def network(inputs: int, outputs: int) -> Any:
    """Two hidden layers with leaky ReLU."""
    sizes = list(pairwise([inputs, SAC_WIDTH, SAC_WIDTH, outputs]))
    layers = [part for a, b in sizes for part in (torch.nn.Linear(a, b), torch.nn.LeakyReLU(0.01))]
    return torch.nn.Sequential(*layers[:-1])


class Sac:
    """The paper's form: twin Q, V with a slow target, a fixed temperature."""

    def __init__(self) -> None:
        self.replay = 0.1 * torch.randn(ROWS, 2 * STATE + ACTION + 2)
        self.critics, self.value = [network(STATE + ACTION, 1) for _ in range(2)], network(STATE, 1)
        self.actor, self.target = network(STATE, 2 * ACTION), copy.deepcopy(self.value).requires_grad_(False)
        self.own = list(self.actor.parameters())
        self.judges = [x for one in (*self.critics, self.value) for x in one.parameters()]
        self.parameters = self.own + self.judges
        self.targets, self.sources = list(self.target.parameters()), list(self.value.parameters())
        self.optimiser, self.form = quickest_adam(self.parameters)

    def draw(self, states: Any) -> tuple[Any, Any, Any]:
        """Actions, their log-densities, and the penalty on the policy's outputs."""
        mean, raw = self.actor(states).chunk(2, -1)
        low, high = LOG_STD
        log_std, noise = low + 0.5 * (high - low) * (1 + torch.tanh(raw)), torch.randn_like(mean)
        before = mean + torch.exp(log_std) * noise
        normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        squash = 2 * (math.log(2) - before - functional.softplus(-2 * before))
        return torch.tanh(before), (normal - squash).sum(-1), PENALTY * ((mean**2).mean() + (log_std**2).mean())

    def quality(self, states: Any, actions: Any) -> list[Any]:
        rows = torch.cat([states, actions], -1)
        return [critic(rows).squeeze(-1) for critic in self.critics]

    def update(self) -> None:
        """One step of every network on one batch."""
        rows = self.replay[torch.randint(ROWS, (SAC_BATCH,))]
        states, actions, following, rest = rows.split([STATE, ACTION, STATE, 2], -1)
        drawn, log_density, penalty = self.draw(states)
        soft = torch.minimum(*self.quality(states, drawn)) - ALPHA * log_density
        self.optimiser.zero_grad()
        (penalty - soft.mean()).backward(inputs=self.own)  # no gradients of the critics here
        with torch.no_grad():
            goal = rest[:, 0] + DISCOUNT * (1 - rest[:, 1]) * self.target(following).squeeze(-1)
        losses = [functional.mse_loss(quality, goal) for quality in self.quality(states, actions)]
        (sum(losses) + functional.mse_loss(self.value(states).squeeze(-1), soft.detach())).backward()
        torch.nn.utils.clip_grad_value_(self.parameters, CLIP)
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.targets, self.sources, TAU)

    def learn(self, units: int) -> None:
        for _ in range(units):
            self.update()


def divergence(mean: Any, variance: Any) -> list[float]:
    """The Jensen-Renyi divergence of such Gaussians, as plain numbers."""
    return jensen_renyi(torch.tensor(mean), torch.tensor(variance)).tolist()


def main() -> None:
    if "PEER_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["PEER_THREADS"]))
    torch.manual_seed(0)
    (fixed, fixed_size), (automatic, automatic_size) = baselines(ALPHA), baselines("auto")
    ensemble, sac, large = Ensemble(), Sac(), torch.randn(2048, 2048)
    work = {
        "sb3_fixed": fixed,
        "sb3_automatic": automatic,
        "gradient": ensemble.learn,
        "imagined": ensemble.imagine,
        "sac_paper": sac.learn,
        "product": lambda _: large @ large,
    }
    members, networks = (sum(x.numel() for x in each.parameters) for each in (ensemble, sac))
    sizes = {"gradient": members, "imagined": members, "sac_paper": networks}
    sizes |= {"sb3_fixed": fixed_size, "sb3_automatic": automatic_size}
    told = {name: {"parameters": size, "does": DOES[name]} for name, size in sizes.items()}
    forms = {"gradient": ensemble.form, "sac_paper": sac.form, "imagined": "none"}
    for name, each in told.items():
        each["optimiser"] = forms.get(name, "Adam, as Stable-Baselines3 has it")
    about = {
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__},
        "products": ["product"],
        "work": told,
    }
    peers.serve(about, work, divergence)


if __name__ == "__main__":
    main()
