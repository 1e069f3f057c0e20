"""Factorization of sparse tensors with coupled sparse matrices.

    import s3cmtf

    ratings = s3cmtf.Tensor.from_frame(frame, ["user", "film", "month"], "stars")
    model = s3cmtf.fit(ratings, rank=8)
    model.predict(frame)
    model.recommend("film", {"user": "anna"}, exclude=ratings)

Everything is computed by the library s3cmtf through its C interface.
"""

from ._library import VERSION as __version__
from ._text import convert
from .discovery import Cluster, Clusters, Concept, Concepts
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .estimator import S3CMTF
from .fitting import Progress, fit, plan
from .labels import Labels
from .matrix import Graph, Matrix
from .model import CoupledMatrix, Model
from .options import Option, Options, build_info, kernels, options, presets
from .prediction import BinaryScores, DistributionScores, Evaluation, Predictions
from .ranking import Ranking, RankingScores
from .tensor import Faults, Summary, Tensor
from .tuning import Trial, Trials, TuneProgress, tune

__all__ = [
    "BinaryScores",
    "Cluster",
    "Clusters",
    "Concept",
    "Concepts",
    "CoupledMatrix",
    "DistributionScores",
    "Evaluation",
    "Faults",
    "Graph",
    "Labels",
    "Matrix",
    "Model",
    "Option",
    "Options",
    "Predictions",
    "Progress",
    "Ranking",
    "RankingScores",
    "S3CMTF",
    "Summary",
    "Tensor",
    "Trial",
    "Trials",
    "TuneProgress",
    "__version__",
    "build_info",
    "convert",
    "fit",
    "kernels",
    "options",
    "plan",
    "presets",
    "tune",
    *_errors,
]
