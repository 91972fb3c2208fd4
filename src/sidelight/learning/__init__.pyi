"""The names of this room; the loader reads this file too."""

from sidelight.learning.participants import (
    Participant as Participant,
    add_up as add_up,
    answer as answer,
)
from sidelight.learning.bayes import BayesModel as BayesModel, private_bayes as private_bayes
from sidelight.learning.cart import private_tree as private_tree
from sidelight.learning.decision_tree import DecisionTree as DecisionTree, tree_text as tree_text
from sidelight.learning.diagram import draw_tree as draw_tree
from sidelight.learning.estimators import (
    PrivateDecisionTree as PrivateDecisionTree,
    PrivateNaiveBayes as PrivateNaiveBayes,
)
from sidelight.learning.files import (
    load_state as load_state,
    publish_round as publish_round,
    read_answers as read_answers,
    read_round as read_round,
    save_state as save_state,
    write_answers as write_answers,
)
from sidelight.learning.private_labels import PrivateLabels as PrivateLabels
from sidelight.learning.learnt import Learnt as Learnt, learn as learn, read_model as read_model
from sidelight.learning.tree_rounds import TreeRounds as TreeRounds, TreeSettings as TreeSettings
from sidelight.learning.statement import Statement as Statement
from sidelight.learning.synthetic import private_synthetic as private_synthetic
