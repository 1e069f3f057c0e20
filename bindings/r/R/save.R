# A model is the file of the library, usable by every program that reads it. Names of rows are in text files beside it, which
# the command-line program reads too; the names of modes and matrices and the formula are in an RDS file beside it, with the
# checksum of the model file.

save_model <- function(object, path) {
  check_model(object)
  check_string(path, "path")
  with_names(object$labels, path, function() {
    .Call(r_model_save, object$handle, path)
    # Names of a model that this one replaces.
    for (n in which(lengths(object$labels) == 0)) {
      stale <- names_file(path, n)
      if (file.exists(stale) && !suppressWarnings(file.remove(stale))) raise("SYSTEM", paste0(stale, ": cannot be removed"))
    }
  })
  spec <- object$spec
  if (!is.null(spec)) spec$environment <- NULL
  frame <- list(checksum = checksum(path), modes = object$modes, named = lengths(object$labels) > 0, spec = spec,
    columns = object$columns)
  write_frame(frame, frame_file(path))
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

checksum <- function(path) unname(tools::md5sum(path))

write_frame <- function(frame, file) {
  bytes <- serialize(frame, NULL)
  temporary <- stage_file(file, function(connection) {
    writeBin(bytes, connection)
    length(bytes)
  })
  commit_file(temporary, file)
}

# Names of modes and of columns of matrices, and the formula, from the RDS file if it was written with this model. Names of rows
# are those of the names files.
read_frame <- function(path, info) {
  order <- length(info$modes$dim)
  frame <- saved_frame(path)
  if (is.null(frame)) {
    modes <- header_modes(path, order)
    columns <- vector("list", length(info$matrices$mode))
    names(columns) <- make.unique(modes[info$matrices$mode], sep = ".")
    frame <- list(modes = modes, named = rep(TRUE, order), spec = NULL, columns = columns)
  }
  # Names of a data file whose name begins in the same way are not those of a mode that was saved without names.
  frame$labels <- lapply(seq_len(order), function(n) {
    if (frame$named[n] || file.exists(names_file(path, n))) .Call(r_names_beside, path, n)
  })
  frame
}

saved_frame <- function(path) {
  file <- frame_file(path)
  if (!file.exists(file)) return(NULL)
  unreadable <- function(condition) {
    raise("BAD_FILE", paste0(file, ": cannot be read (", conditionMessage(condition),
      "); without this file the model is loaded without its formula"))
  }
  frame <- tryCatch(readRDS(file), error = unreadable, warning = unreadable)
  if (!is.list(frame) || !identical(frame$checksum, checksum(path))) {
    signal_note("warning", paste0(file, " belongs to another model and is not used"))
    return(NULL)
  }
  if (!is.null(frame$spec)) frame$spec$environment <- globalenv()
  frame
}

# Other programs write the name of a mode as the title of the column of names; "name" stands for none.
header_modes <- function(path, order) {
  titles <- vapply(names_file(path, seq_len(order)), function(file) {
    if (!file.exists(file)) return("")
    parts <- strsplit(readLines(file, 1, warn = FALSE, encoding = "UTF-8"), "\t", fixed = TRUE)
    if (length(parts) == 1 && length(parts[[1]]) == 2 && parts[[1]][1] == "index") parts[[1]][2] else ""
  }, "", USE.NAMES = FALSE)
  ifelse(titles %in% c("", "name") | duplicated(titles), paste0("mode", seq_len(order)), titles)
}
