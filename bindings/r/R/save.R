# A model is the file of the library, usable by every program that reads it. Files beside it have the names of rows
# (PATH.mode1.tsv), of matrix columns (PATH.matrix1.tsv) and of modes (PATH.modes.tsv), which the packages for other languages
# read and write too. PATH.rds has what only R needs: the formula, and which modes have no names.

save_model <- function(object, path) {
  check_model(object)
  check_folder(check_string(path, "path"))
  write_beside(object, path, function() .Call(r_model_save, object$handle, path))
  invisible(path)
}

# Does `write`, which writes the model file, and writes the files beside it.
write_beside <- function(object, path, write) {
  encode_names(object$modes, modes_file(path))
  files <- c(names_files(path, object$labels), names_files(path, unname(object$columns), "matrix"))
  with_names(files, path, write, c("mode", "matrix"))
  write_modes(object$modes, path)
  write_formula(object, path)
}

# Writes the files beside a checkpoint if the fit has written it since its digest was `before`. The model of a fit is more
# important than these files.
name_checkpoint <- function(object, path, before) {
  if (identical(digest_or_null(path), before)) return()
  tryCatch(write_beside(object, path, function() NULL), s3cmtf_error = function(condition) {
    signal_note("warning", conditionMessage(condition))
  })
}

digest_or_null <- function(path) if (file.exists(path) && !dir.exists(path)) model_digest(path)

load_model <- function(path, mapped = FALSE) {
  handle <- .Call(r_model_load, check_string(path, "path"), check_flag(mapped, "mapped"))
  info <- .Call(r_model_info, handle)
  order <- length(info$modes$dim)
  modes <- read_modes(path, order)
  saved <- read_formula(path)
  files <- names(names_files(path, info$matrices$mode, "matrix"))
  columns <- lapply(files, function(file) if (file.exists(file)) read_names(file))
  names(columns) <- matrix_names(modes, info$matrices$mode)
  labels <- lapply(seq_len(order), function(n) {
    # Names of a data file whose name begins in the same way are not those of a mode that was saved without names.
    own <- file.exists(names(names_files(path, modes))[n])
    if (own || !isTRUE(saved$unnamed[n])) read_names(path, n)
  })
  new_model(handle, modes, labels, saved$spec, columns)
}

export_model <- function(object, folder) {
  check_model(object)
  .Call(r_model_export, object$handle, check_string(folder, "folder"))
  invisible(folder)
}

# The SHA-256 of the first and the last 64 KiB of a model file. Files beside it have it because another program may replace the
# model without them.
model_digest <- function(path) {
  end <- 65536
  connection <- file(path, "rb")
  on.exit(close(connection))
  first <- readBin(connection, raw(), end)
  seek(connection, max(0, file.size(path) - end))
  .Call(r_sha256, c(first, readBin(connection, raw(), end)))
}

modes_file <- function(path) paste0(path, ".modes.tsv")

default_modes <- function(order) paste0("mode", seq_len(order))

modes_title <- function(path) paste0(names_title, "\t", model_digest(path))

write_modes <- function(modes, path) {
  file <- modes_file(path)
  if (identical(modes, default_modes(length(modes)))) return(remove_own(file, is_own_file))
  staged <- stage_names(file, modes, modes_title(path))
  if (!is_own_file(file)) set_aside(file)
  commit_file(staged, file)
}

read_modes <- function(path, order) {
  file <- modes_file(path)
  if (!file.exists(file)) return(default_modes(order))
  lines <- tryCatch(suppressWarnings(readLines(file, warn = FALSE, encoding = "UTF-8")), error = function(condition) character())
  lines <- lines[validUTF8(lines)]
  names <- decode_names(sub("^.*\t", "", lines[-1]))
  fault <- if (!identical(lines[1], modes_title(path))) {
    "they were saved with another model"
  } else if (length(names) != order) {
    paste0("there are ", length(names), " for ", order, " modes")
  } else if (anyDuplicated(names) || any(names == "")) {
    "each mode needs a name of its own"
  }
  if (is.null(fault)) return(names)
  signal_note("warning", paste0("the names of modes in ", file, " are ignored: ", fault))
  default_modes(order)
}

formula_file <- function(path) paste0(path, ".rds")

write_formula <- function(object, path) {
  file <- formula_file(path)
  unnamed <- lengths(object$labels) == 0
  if (is.null(object$spec) && !any(unnamed)) return(remove_own(file, is_own_formula))
  spec <- object$spec
  if (!is.null(spec)) spec$environment <- NULL
  bytes <- serialize(list(digest = model_digest(path), spec = spec, unnamed = unnamed), NULL)
  temporary <- stage_file(file, function(connection) {
    writeBin(bytes, connection)
    length(bytes)
  })
  if (!is_own_formula(file)) set_aside(file)
  commit_file(temporary, file)
}

# Whether this package wrote an RDS file. A pipe has no size and is not read.
is_own_formula <- function(file) {
  if (is_link(file) || dir.exists(file) || !isTRUE(file.size(file) > 0)) return(FALSE)
  saved <- tryCatch(suppressWarnings(readRDS(file)), error = function(condition) NULL)
  is.list(saved) && is.character(saved$digest)
}

# The content of the RDS file if it was written with this model.
read_formula <- function(path) {
  file <- formula_file(path)
  if (!file.exists(file)) return(NULL)
  unreadable <- function(condition) {
    raise("BAD_FILE", paste0(file, ": cannot be read (", conditionMessage(condition),
      "); without this file the model is loaded without its formula"))
  }
  saved <- tryCatch(readRDS(file), error = unreadable, warning = unreadable)
  if (!is.list(saved) || !identical(saved$digest, model_digest(path))) {
    signal_note("warning", paste0(file, " belongs to another model and is not used"))
    return(NULL)
  }
  if (!is.null(saved$spec)) saved$spec$environment <- globalenv()
  saved
}
