# A model is the file of the library, usable by every program that reads it. Names of rows are in text files beside it, which
# the command-line program reads too; the names of modes and matrices and the formula are in an RDS file beside it.

save_model <- function(object, path) {
  check_model(object)
  check_string(path, "path")
  .Call(r_model_save, object$handle, path)
  # Names of a model that this one replaces.
  for (n in which(vapply(object$labels, is.null, TRUE))) {
    if (file.exists(names_file(path, n))) file.remove(names_file(path, n))
  }
  write_names(object$labels, path)
  spec <- object$spec
  if (!is.null(spec)) spec$environment <- NULL
  dims <- model_info(object)$modes$dim
  saveRDS(list(dims = dims, modes = object$modes, labels = object$labels, spec = spec, columns = object$columns),
    frame_file(path))
  invisible(path)
}

load_model <- function(path, mapped = TRUE) {
  handle <- .Call(r_model_load, check_string(path, "path"), check_flag(mapped, "mapped"))
  info <- .Call(r_model_info, handle)
  frame <- read_frame(path, info)
  new_model(handle, frame$modes, frame$labels, frame$spec, frame$columns)
}

export_model <- function(object, folder) {
  check_model(object)
  .Call(r_model_export, object$handle, check_string(folder, "folder"))
  invisible(folder)
}

frame_file <- function(path) paste0(path, ".rds")

# Names of modes, rows, and columns of matrices: from the RDS file, otherwise from names files.
read_frame <- function(path, info) {
  order <- length(info$modes$dim)
  file <- frame_file(path)
  if (file.exists(file)) {
    frame <- readRDS(file)
    if (identical(frame$dims, info$modes$dim) && length(frame$columns) == length(info$matrices$mode)) {
      if (!is.null(frame$spec)) frame$spec$environment <- globalenv()
      return(frame)
    }
    warning(file, " belongs to another model and is not used", call. = FALSE)
  }
  modes <- paste0("mode", seq_len(order))
  columns <- vector("list", length(info$matrices$mode))
  names(columns) <- make.unique(modes[info$matrices$mode], sep = ".")
  labels <- lapply(seq_len(order), function(n) .Call(r_names_beside, path, n))
  list(modes = modes, labels = labels, spec = NULL, columns = columns)
}
