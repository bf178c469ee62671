"""`maxplore list`."""

import gymnasium as gym

from maxplore.commands.say import say
from maxplore.experiments import EXPERIMENTS
from maxplore.methods import FINITE, METHODS, PRESETS
from maxplore.tasks import TASKS


def listed() -> int:
    """Environments, methods, presets, tasks and figures."""
    own = [name for name in gym.registry if name.startswith("maxplore/")]
    say("environments    " + ", ".join(own))
    say("                and any of Gymnasium's with Box or Discrete spaces")
    say("methods         " + ", ".join(METHODS) + "; of Discrete spaces: " + ", ".join(FINITE))
    say("presets         " + ", ".join(PRESETS))
    for heading, rows in (
        ("tasks", {name: f"{task.about} ({task.env})" for name, task in TASKS.items()}),
        ("figures", {name: experiment.title for name, experiment in EXPERIMENTS.items()}),
    ):
        for number, (name, about) in enumerate(rows.items()):
            say(f"{heading if not number else '':16s}{name:16s} {about}")
    return 0
