"""Concepts and clusters of the rows of a mode."""

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._arrays import Array, output
from ._base import Mode, ModelBase, thread_count
from ._cells import row_number
from ._library import Handle, call, create, ffi, interruptible, lib, struct
from ._tables import Table, html_table, text_table
from .errors import ArgumentError
from .labels import Labels, Rows
from .matrix import label_matrix

_ENDS = (("largest", lib.S3CMTF_LARGEST), ("smallest", lib.S3CMTF_SMALLEST))


@dataclass(frozen=True)
class ConceptColumn:
    """A column of a coupled matrix that is associated with a concept."""

    matrix: int
    column: int
    #: The label of the column, if it has one.
    label: Any
    #: The contribution of the concept to the column's prediction, relative to the root mean square of its predictions.
    share: float


@dataclass(frozen=True, eq=False)
class ConceptEnd:
    """The rows with the largest or smallest loadings of a concept, the most extreme first."""

    rows: Array
    loadings: Array
    #: The labels of the rows; None if the mode has no labels.
    labels: Optional[Array]
    columns: Tuple[ConceptColumn, ...]


@dataclass(frozen=True, eq=False)
class Concept:
    """What a column of a factor represents."""

    #: The column of the factor.
    column: int
    #: The root mean square of the concept's contribution to predictions, weighted by tensor entries.
    strength: float
    #: The contribution to the prediction for a row of loading 1.
    effect: float
    #: Whether loadings and shares have the opposite sign of the model's numbers.
    sign_flipped: bool
    largest: ConceptEnd
    smallest: ConceptEnd


class Concepts(List[Concept]):
    """The concepts of a mode, the strongest first."""

    #: The core contracted with the given rows, if exactly one other mode has no given row; otherwise None.
    profile: Optional[Array] = None
    #: The mode of the columns of `profile`.
    profile_mode: Optional[int] = None

    def _table(self) -> Table:
        rows = [(of.column, f"{of.strength:.4g}", f"{of.effect:.4g}", _short(of.largest), _short(of.smallest)) for of in self]
        return f"{len(self)} concepts", ("column", "strength", "effect", "largest", "smallest"), rows

    def __repr__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())


@dataclass(frozen=True)
class ClusterLabel:
    """A matrix column that is over-represented in a cluster."""

    matrix: int
    column: int
    #: The label of the column, if it has one.
    label: Any
    rows_in_cluster: int
    rows_overall: int
    #: The fraction of the cluster's rows with the label, divided by that of all rows.
    lift: float
    p_value: float
    log10_p_value: float
    log_odds: float


@dataclass(frozen=True, eq=False)
class Cluster:
    """A cluster of rows."""

    #: The number of rows.
    size: int
    #: The root mean square distance of the rows to the centre.
    radius: float
    #: The rows that are nearest to the centre, with their distances and labels.
    members: Array
    distances: Array
    member_labels: Optional[Array]
    #: Labels from the matrices, by ascending p-value.
    labels: Tuple[ClusterLabel, ...]
    #: The mean of the factor rows.
    centre: Array


class Clusters(List[Cluster]):
    """Clusters of the rows of a mode, the largest first."""

    #: All clustered rows, ascending, and the cluster of each.
    rows: Array
    assignment: Array
    #: The between-cluster fraction of the total variance of the rows.
    explained_variance: float
    #: The gap curve as a structured array with the fields clusters, gap, standard_error, log_within and log_reference.
    gap: Array
    #: The number of clusters that the gap statistic chooses, and whether its rule was met; 0 and False without a curve.
    gap_choice: int
    gap_settled: bool
    #: For each label matrix, the uncertainty coefficient of its labels given the clusters.
    information: Array

    def _table(self) -> Table:
        title = f"{len(self)} clusters, {self.explained_variance:.1%} of the variance is between clusters"
        rows = [(number, of.size, f"{of.radius:.3g}", _names(of.labels), _list(of)) for number, of in enumerate(self)]
        return title, ("cluster", "rows", "radius", "labels", "members"), rows

    def __repr__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())


class Discovery(ModelBase):
    """Methods of a model that describe its rows."""

    def concepts(
        self, mode: Mode, *, top: int = 10, min_entries: int = 1, given: Optional[Mapping[Mode, Any]] = None
    ) -> Concepts:
        """Describes the columns of the factor of a mode: their strength, and the rows and matrix columns with the largest and
        smallest loadings.

        top: the largest number of rows, and of columns per matrix, at each end.
        min_entries: the smallest number of tensor entries of a listed row.
        given: rows of other modes, by mode; the remaining modes are averaged over.
        """
        number = self._number(mode)
        fixed = self._given(given or {})
        rows = [row_number(row, self.labels[of], self._modes.title(of)) for of, row in fixed.items()]
        modes, values = ffi.new("uint64_t[]", list(fixed)), ffi.new("uint64_t[]", rows)
        request = struct("concepts_request", top=top, min_entries=min_entries, given_count=len(rows))
        request.given_modes, request.given_rows = modes, values
        model = self._use()

        def work(cancel: Any) -> Handle:
            request.cancel = cancel
            return create("concepts", lib.s3cmtf_concepts_new, model, number, request)

        if number in fixed:
            raise ArgumentError(f"the concepts of {self._modes.title(number)} are wanted; give rows of other modes")
        with self._rows_explained({of: [row] for of, row in zip(fixed, rows)}):
            handle = interruptible(work)
        count = ffi.new("uint64_t *")
        call(lib.s3cmtf_concepts_get_count, handle, count)
        found = Concepts(self._concept(handle, index, self.labels[number]) for index in range(count[0]))
        found.profile_mode, found.profile = _profile(handle)
        return found

    def _concept(self, handle: Handle, index: int, labels: Optional[Labels]) -> Concept:
        info = struct("concept")
        call(lib.s3cmtf_concepts_get, handle, index, info)
        ends = {}
        for name, end in _ENDS:
            size = getattr(info, f"{name}_rows")
            rows, loadings = np.empty(size, np.int64), np.empty(size)
            arguments = (index, end, output(rows, "uint64_t"), output(loadings, "double"), size)
            call(lib.s3cmtf_concepts_copy_rows, handle, *arguments)
            columns = []
            of = struct("concept_column")
            for place in range(getattr(info, f"{name}_columns")):
                call(lib.s3cmtf_concepts_get_column, handle, index, end, place, of)
                label = _label(self._columns[of.matrix], of.column)
                columns.append(ConceptColumn(int(of.matrix), int(of.column), label, of.share))
            ends[name] = ConceptEnd(rows, loadings, None if labels is None else labels.take(rows), tuple(columns))
        return Concept(int(info.column), info.strength, info.effect, bool(info.sign_flipped), **ends)

    def clusters(
        self,
        mode: Mode,
        k: Optional[int] = None,
        *,
        max_k: int = 0,
        matrices: Any = (),
        restarts: int = 0,
        references: int = 0,
        curve_rows: int = 0,
        min_entries: int = 1,
        space: str = "predictions",
        members: int = 10,
        labels: int = 10,
        seed: int = 0,
        threads: int = 0,
    ) -> Clusters:
        """Clusters the rows of a mode by k-means.

        k: the number of clusters; None: chosen by the gap statistic, up to max_k (0: 20).
        matrices: matrices whose columns label clusters, one or a list, as for Matrix; rows with labels are matched with those
            of the mode, and rows that the model does not have are left out with a warning.
        restarts, references, curve_rows: effort of k-means and of the gap statistic; 0: the default.
        min_entries: the smallest number of tensor entries of a clustered row.
        space: "predictions" (distances between predictions) or "columns" (distances between factor rows).
        members, labels: how many members per cluster, and labels per cluster and matrix, are listed.
        """
        spaces = {"predictions": lib.S3CMTF_SPACE_PREDICTIONS, "columns": lib.S3CMTF_SPACE_COLUMNS}
        if space not in spaces:
            raise ValueError(f"there is no space {space!r}; spaces are {', '.join(spaces)}")
        number = self._number(mode)
        listed = list(matrices) if isinstance(matrices, (list, tuple)) else [matrices]
        size, title = self.shape[number], self._modes.title(number)
        rows = Rows("the model", self.labels[number], size)
        tensors = [label_matrix(of, number, rows, f"matrix {place}", title) for place, of in enumerate(listed)]
        handles = [of._use() for of in tensors]
        pointers = ffi.new("s3cmtf_coo *[]", [of.pointer for of in handles])
        request = struct(
            "clusters_request",
            k=k or 0,
            max_k=max_k,
            restarts=restarts,
            references=references,
            curve_rows=curve_rows,
            min_entries=min_entries,
            space=spaces[space],
            members=members,
            labels=labels,
            matrices=pointers,
            matrix_count=len(handles),
            seed=seed,
            threads=thread_count(threads),
        )
        model = self._use()

        def work(cancel: Any) -> Handle:
            request.cancel = cancel
            return create("clusters", lib.s3cmtf_clusters_new, model, number, request)

        rank = int(self._mode_info(number).rank)
        return _read_clusters(interruptible(work), rank, self.labels[number], [of.labels[1] for of in tensors])


def _profile(handle: Handle) -> Tuple[Optional[int], Optional[Array]]:
    mode, columns, found = (ffi.new("uint64_t *") for _ in range(3))
    call(lib.s3cmtf_concepts_copy_profile, handle, ffi.NULL, 0, mode, columns, found)
    if not found[0]:
        return None, None
    numbers = np.empty((found[0] // columns[0], columns[0]))
    call(lib.s3cmtf_concepts_copy_profile, handle, output(numbers, "double"), numbers.size, mode, columns, found)
    return int(mode[0]), numbers


def _read_clusters(handle: Handle, rank: int, rows: Optional[Labels], columns: Sequence[Optional[Labels]]) -> Clusters:
    info = struct("clusters_info")
    call(lib.s3cmtf_clusters_get_info, handle, info)
    found = Clusters(_read_cluster(handle, index, rank, rows, columns) for index in range(info.clusters))
    found.explained_variance = info.explained_variance
    found.gap_choice, found.gap_settled = int(info.curve_choice), bool(info.curve_settled)
    found.rows, found.assignment = np.empty(info.rows, np.int64), np.empty(info.rows, np.int64)
    arguments = (output(found.rows, "uint64_t"), output(found.assignment, "uint64_t"), info.rows)
    call(lib.s3cmtf_clusters_copy_rows, handle, *arguments)
    found.information = np.empty(info.matrices)
    call(lib.s3cmtf_clusters_copy_information, handle, output(found.information, "double"), info.matrices)
    kinds = [("clusters", np.int64), *((name, np.float64) for name in ("gap", "standard_error", "log_within", "log_reference"))]
    points = []
    point = struct("gap")
    for place in range(info.curve_length):
        call(lib.s3cmtf_clusters_get_gap, handle, place, point)
        points.append(tuple(getattr(point, name) for name, _ in kinds))
    found.gap = np.array(points, dtype=kinds)
    return found


def _read_cluster(handle: Handle, index: int, rank: int, rows: Optional[Labels], columns: Sequence[Optional[Labels]]) -> Cluster:
    info = struct("cluster")
    call(lib.s3cmtf_clusters_get, handle, index, info)
    members, distances = np.empty(info.members, np.int64), np.empty(info.members)
    arguments = (index, output(members, "uint64_t"), output(distances, "double"), info.members)
    call(lib.s3cmtf_clusters_copy_members, handle, *arguments)
    centre = np.empty(rank)
    call(lib.s3cmtf_clusters_copy_centre, handle, index, output(centre, "double"), rank)
    labels = []
    for place in range(info.labels):
        of = struct("cluster_label")
        call(lib.s3cmtf_clusters_get_label, handle, index, place, of)
        fields = {name: getattr(of, name) for name in ClusterLabel.__annotations__ if name != "label"}
        labels.append(ClusterLabel(label=_label(columns[of.matrix], of.column), **fields))
    names = None if rows is None else rows.take(members)
    return Cluster(int(info.rows), info.radius, members, distances, names, tuple(labels), centre)


def _label(labels: Optional[Labels], place: int) -> Any:
    return labels[place] if labels is not None and place < len(labels) else None


def _short(end: ConceptEnd) -> str:
    return ", ".join(str(row) for row in (end.rows if end.labels is None else end.labels)[:3])


def _names(labels: Sequence[ClusterLabel]) -> str:
    return ", ".join(str(of.column if of.label is None else of.label) for of in labels[:3])


def _list(cluster: Cluster) -> str:
    return ", ".join(str(row) for row in (cluster.members if cluster.member_labels is None else cluster.member_labels)[:3])
