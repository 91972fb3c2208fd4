"""The names of this room; the loader reads this file too."""

from sidelight.service.client import Client as Client, Offer as Offer
from sidelight.service.label_design import LabelDesign as LabelDesign
from sidelight.service.panels import PanelDesign as PanelDesign
from sidelight.service.rounds import Round as Round
from sidelight.service.task import (
    Pace as Pace,
    Task as Task,
    Terms as Terms,
    read_task as read_task,
    task_from as task_from,
)
