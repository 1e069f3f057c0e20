# The opaque objects, constants and structs of include/s3cmtf.h, under their names in C. test/signatures.py compares them.

struct s3cmtf_error end
struct s3cmtf_cancel end
struct s3cmtf_text end
struct s3cmtf_coo end
struct s3cmtf_options end
struct s3cmtf_problem end
struct s3cmtf_fit end
struct s3cmtf_tune end
struct s3cmtf_model end
struct s3cmtf_concepts end
struct s3cmtf_clusters end
struct s3cmtf_names end

const S3CMTF_OK = Int32(0)
const S3CMTF_CANCELLED = Int32(1)
const S3CMTF_NULL_ARGUMENT = Int32(2)
const S3CMTF_BAD_ARGUMENT = Int32(3)
const S3CMTF_BUFFER_TOO_SMALL = Int32(4)
const S3CMTF_BAD_STATE = Int32(5)
const S3CMTF_BAD_FILE = Int32(6)
const S3CMTF_BAD_ENTRY = Int32(7)
const S3CMTF_SYSTEM = Int32(8)
const S3CMTF_OUT_OF_MEMORY = Int32(9)
const S3CMTF_INTERNAL = Int32(10)
const S3CMTF_RESERVED = Int32(11)
const S3CMTF_VERSION_MAJOR = Int32(0)
const S3CMTF_VERSION_MINOR = Int32(2)
const S3CMTF_VERSION_PATCH = Int32(0)
const S3CMTF_KERNEL_UNKNOWN = Int32(-1)
const S3CMTF_KERNEL_SCALAR = Int32(0)
const S3CMTF_KERNEL_WIDE = Int32(1)
const S3CMTF_KERNEL_AVX2 = Int32(2)
const S3CMTF_KERNEL_AVX512 = Int32(3)
const S3CMTF_U32 = Int32(1)
const S3CMTF_U64 = Int32(2)
const S3CMTF_F32 = Int32(3)
const S3CMTF_F64 = Int32(4)
const S3CMTF_OPEN_MAPPED = Int32(0)
const S3CMTF_OPEN_PRIVATE = Int32(1)
const S3CMTF_OPEN_UNVERIFIED = Int32(2)
const S3CMTF_KEEP_MEAN = Int32(0)
const S3CMTF_KEEP_FIRST = Int32(1)
const S3CMTF_KEEP_LAST = Int32(2)
const S3CMTF_OPTION_BOOL = Int32(1)
const S3CMTF_OPTION_INTEGER = Int32(2)
const S3CMTF_OPTION_REAL = Int32(3)
const S3CMTF_OPTION_CHOICE = Int32(4)
const S3CMTF_OPTION_INTEGER_LIST = Int32(5)
const S3CMTF_OPTION_REAL_LIST = Int32(6)
const S3CMTF_MATRIX_OBSERVED = Int32(0)
const S3CMTF_MATRIX_GRAPH = Int32(1)
const S3CMTF_MATRIX_FULL = Int32(2)
const S3CMTF_MATRIX_SAMPLED = Int32(3)
const S3CMTF_MATRIX_AUTO = Int32(4)
const S3CMTF_FIT_READY = Int32(0)
const S3CMTF_FIT_RUNNING = Int32(1)
const S3CMTF_FIT_ENDED = Int32(2)
const S3CMTF_EVENT_EPOCH = Int32(1)
const S3CMTF_EVENT_RANK_LOWERED = Int32(2)
const S3CMTF_EVENT_ROLLED_BACK = Int32(3)
const S3CMTF_EVENT_CHECKPOINT = Int32(4)
const S3CMTF_EVENT_WARNING = Int32(5)
const S3CMTF_EVENT_SELECTED = Int32(6)
const S3CMTF_STOP_NONE = Int32(0)
const S3CMTF_STOP_EPOCHS = Int32(1)
const S3CMTF_STOP_TOLERANCE = Int32(2)
const S3CMTF_STOP_PATIENCE = Int32(3)
const S3CMTF_STOP_TIME_LIMIT = Int32(4)
const S3CMTF_STOP_CANCELLED = Int32(5)
const S3CMTF_MODEL_TUCKER = Int32(1)
const S3CMTF_MODEL_CP = Int32(2)
const S3CMTF_ROW_MAJOR = Int32(0)
const S3CMTF_COLUMN_MAJOR = Int32(1)
const S3CMTF_CLIP_DEFAULT = Int32(0)
const S3CMTF_CLIP_OFF = Int32(1)
const S3CMTF_CLIP_ON = Int32(2)
const S3CMTF_LARGEST = Int32(0)
const S3CMTF_SMALLEST = Int32(1)
const S3CMTF_SPACE_PREDICTIONS = Int32(0)
const S3CMTF_SPACE_COLUMNS = Int32(1)

struct s3cmtf_indices
    modes::Ptr{Ptr{Cvoid}}
    count::UInt64
    stride::UInt64
    type::Int32
    base::Int32
end

struct s3cmtf_entries
    size::UInt64
    order::UInt64
    dims::Ptr{UInt64}
    indices::s3cmtf_indices
    values::Ptr{Cvoid}
    weights::Ptr{Cvoid}
    value_type::Int32
    weight_type::Int32
end

struct s3cmtf_coo_info
    size::UInt64
    order::UInt64
    count::UInt64
    value_type::Int32
    weight_type::Int32
end

struct s3cmtf_coo_faults
    size::UInt64
    damaged_sections::UInt64
    out_of_range::UInt64
    not_finite::UInt64
    duplicate_cells::UInt64
    surplus_entries::UInt64
end

struct s3cmtf_coo_summary
    size::UInt64
    min::Float64
    max::Float64
    mean::Float64
    standard_deviation::Float64
end

struct s3cmtf_split_request
    size::UInt64
    test_fraction::Float64
    valid_fraction::Float64
    seed::UInt64
    latest::Int32
    row_mode::UInt64
    time_mode::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_option_info
    size::UInt64
    type::Int32
    name::Cstring
    default_value::Cstring
    help::Cstring
    min::Cstring
    max::Cstring
    choices::Cstring
end

struct s3cmtf_coupling
    size::UInt64
    kind::Int32
    zeros::UInt32
    weight::Float64
    penalty::Float64
    has_penalty::Int32
end

struct s3cmtf_progress
    size::UInt64
    state::Int32
    event::Int32
    stop_reason::Int32
    kernel::Int32
    threads::UInt64
    epoch::UInt64
    epochs::UInt64
    rollbacks::UInt64
    eta::Float64
    loss::Float64
    train_rmse::Float64
    test_rmse::Float64
    valid_rmse::Float64
    update_seconds::Float64
    eval_seconds::Float64
    entries_per_second::Float64
    message::Cstring
end

struct s3cmtf_tune_request
    size::UInt64
    trials::UInt64
    rungs::UInt64
    fit_threads::UInt64
    valid_fraction::Float64
    valid::Ptr{s3cmtf_coo}
end

struct s3cmtf_trial
    size::UInt64
    number::UInt64
    rungs::UInt64
    epochs::UInt64
    valid_rmse::Float64
    seconds::Float64
    done::UInt64
    total::UInt64
    best_rmse::Float64
    error::Cstring
end

struct s3cmtf_model_info
    size::UInt64
    kind::Int32
    order::UInt64
    matrices::UInt64
    epochs::UInt64
    samples::UInt64
    mean::Float64
    min_value::Float64
    max_value::Float64
end

struct s3cmtf_model_mode
    size::UInt64
    dim::UInt64
    rows::UInt64
    rank::UInt64
end

struct s3cmtf_model_matrix
    size::UInt64
    mode::UInt64
    kind::Int32
    weight::Float64
    columns::UInt64
    rows::UInt64
end

struct s3cmtf_view
    numbers::Ptr{Float32}
    rows::UInt64
    columns::UInt64
    stride::UInt64
end

struct s3cmtf_predict_request
    size::UInt64
    clip::Int32
    threads::UInt64
    cancel::Ptr{s3cmtf_cancel}
    deviations::Ptr{Cvoid}
    quantiles::Ptr{Float64}
    quantile_count::UInt64
    quantile_values::Ptr{Cvoid}
end

struct s3cmtf_evaluation
    size::UInt64
    entries::UInt64
    rmse::Float64
    mae::Float64
    clipped_rmse::Float64
    clipped_mae::Float64
end

struct s3cmtf_binary_scores
    size::UInt64
    entries::UInt64
    low::Float64
    high::Float64
    high_fraction::Float64
    auc::Float64
    log_loss::Float64
end

struct s3cmtf_distribution_scores
    size::UInt64
    entries::UInt64
    levels::UInt64
    log_score::Float64
    crps::Float64
    coverage_50::Float64
    coverage_90::Float64
    width_90::Float64
end

struct s3cmtf_fold_in_request
    size::UInt64
    tensor::Ptr{s3cmtf_coo}
    matrix_count::UInt64
    matrices::Ptr{Ptr{s3cmtf_coo}}
    matrix_numbers::Ptr{UInt64}
    weights::Ptr{Float64}
    replace::Int32
    threads::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_recommend_request
    size::UInt64
    mode::UInt64
    top::UInt64
    queries::s3cmtf_indices
    quantile::Float64
    exclude::Ptr{s3cmtf_coo}
    exclude_mode::UInt64
    candidates::Ptr{UInt64}
    candidate_count::UInt64
    exclude_rows::Ptr{UInt64}
    exclude_row_count::UInt64
    threads::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_similar_request
    size::UInt64
    mode::UInt64
    top::UInt64
    rows::Ptr{UInt64}
    row_count::UInt64
    threads::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_ranking_request
    size::UInt64
    mode::UInt64
    user_mode::UInt64
    length::UInt64
    quantile::Float64
    min_relevant_value::Float64
    has_min_relevant_value::Int32
    threads::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_ranking
    size::UInt64
    users::UInt64
    hit_rate::Float64
    recall::Float64
    ndcg::Float64
    popularity_hit_rate::Float64
    popularity_recall::Float64
    popularity_ndcg::Float64
end

struct s3cmtf_concepts_request
    size::UInt64
    top::UInt64
    min_entries::UInt64
    given_modes::Ptr{UInt64}
    given_rows::Ptr{UInt64}
    given_count::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_concept
    size::UInt64
    column::UInt64
    strength::Float64
    effect::Float64
    sign_flipped::Int32
    largest_rows::UInt64
    smallest_rows::UInt64
    largest_columns::UInt64
    smallest_columns::UInt64
end

struct s3cmtf_concept_column
    size::UInt64
    matrix::UInt64
    column::UInt64
    share::Float64
end

struct s3cmtf_clusters_request
    size::UInt64
    k::UInt64
    max_k::UInt64
    restarts::UInt64
    references::UInt64
    curve_rows::UInt64
    min_entries::UInt64
    space::Int32
    members::UInt64
    labels::UInt64
    matrices::Ptr{Ptr{s3cmtf_coo}}
    matrix_count::UInt64
    seed::UInt64
    threads::UInt64
    cancel::Ptr{s3cmtf_cancel}
end

struct s3cmtf_clusters_info
    size::UInt64
    clusters::UInt64
    rows::UInt64
    explained_variance::Float64
    matrices::UInt64
    curve_length::UInt64
    curve_choice::UInt64
    curve_rows::UInt64
    curve_settled::Int32
end

struct s3cmtf_cluster
    size::UInt64
    rows::UInt64
    radius::Float64
    members::UInt64
    labels::UInt64
end

struct s3cmtf_cluster_label
    size::UInt64
    matrix::UInt64
    column::UInt64
    rows_in_cluster::UInt64
    rows_overall::UInt64
    lift::Float64
    p_value::Float64
    log10_p_value::Float64
    log_odds::Float64
end

struct s3cmtf_gap
    size::UInt64
    clusters::UInt64
    gap::Float64
    standard_error::Float64
    log_within::Float64
    log_reference::Float64
end
