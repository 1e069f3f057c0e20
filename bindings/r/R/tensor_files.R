# Options of reading text by name, in the form that the C code expects.
text_options <- function(...) {
  dots <- list(...)
  if (length(dots) > 0 && (is.null(names(dots)) || any(names(dots) == ""))) {
    bad_argument("options of reading text are given by name, such as columns = c(\"user\", \"film\")")
  }
  # "names", "time", "bin", "split" and "rows_of" may be given several times.
  repeated <- c("names", "time", "bin", "split", "rows_of")
  values <- lapply(names(dots), function(name) {
    if (name %in% repeated) as.character(dots[[name]]) else option_text(dots[[name]], name)
  })
  list(names = rep(as.character(names(dots)), lengths(values)), values = as.character(unlist(values)))
}

open_coo <- function(path, mapped = TRUE, verify = TRUE, modes = NULL, ...) {
  check_string(path, "path")
  text <- text_options(...)
  handle <- .Call(r_coo_open, path, check_flag(mapped, "mapped"), check_flag(verify, "verify"), text$names, text$values)
  order <- length(.Call(r_coo_info, handle)$dims)
  if (is.null(modes)) modes <- rep("", order)
  if (!is.character(modes) || length(modes) != order) bad_argument("modes must have ", order, " names")
  labels <- lapply(seq_len(order), function(n) read_names(path, n))
  tensor <- new_tensor(handle, mode_names(stats::setNames(labels, modes)), labels)
  tensor$is_file <- TRUE
  tensor
}

write_coo <- function(tensor, path) {
  check_tensor(tensor)
  check_folder(check_string(path, "path"))
  with_tensor_names(tensor, data_stem(path), function() .Call(r_coo_write, tensor$handle, path))
  invisible(path)
}

with_tensor_names <- function(tensor, stem, write) with_names(names_files(stem, tensor$labels), stem, write)

convert_coo <- function(input, output, ...) {
  text <- text_options(...)
  .Call(r_coo_convert, check_string(input, "input"), check_string(output, "output"), text$names, text$values)
  invisible(output)
}

check_coo <- function(tensor) {
  check_tensor(tensor)
  unlist(.Call(r_coo_check, tensor$handle))
}

# Splits and corrections read a file; entries in memory are written to a temporary one.
with_file <- function(tensor, use) {
  if (isTRUE(tensor$is_file)) return(use(tensor$handle))
  path <- tempfile(fileext = ".coo")
  on.exit(unlink(path))
  .Call(r_coo_write, tensor$handle, path)
  use(.Call(r_coo_open, path, TRUE, FALSE, character(), character()))
}

fix_coo <- function(tensor, path, keep = c("mean", "first", "last")) {
  check_tensor(tensor)
  keep <- check_choice(keep)
  check_folder(check_string(path, "path"))
  fix <- function(handle) .Call(r_coo_fix, handle, path, match(keep, c("mean", "first", "last")) - 1L)
  valid <- valid_entries(tensor)
  found <- unlist(with_tensor_names(tensor, data_stem(path), function() with_file(valid, fix)))
  found + c(tensor_info(tensor)$count - tensor_info(valid)$count, 0)
}

# Entries in memory with finite values and weights. Others cannot be written to a file.
valid_entries <- function(tensor) {
  if (isTRUE(tensor$is_file)) return(tensor)
  values <- .Call(r_coo_values, tensor$handle)
  weights <- .Call(r_coo_weights, tensor$handle)
  valid <- is.finite(values) & (if (is.null(weights)) TRUE else is.finite(weights) & weights >= 0)
  if (all(valid)) return(tensor)
  indices <- lapply(seq_along(tensor$modes), function(n) .Call(r_coo_indices, tensor$handle, n)[valid])
  tensor$handle <- new_coo(stats::setNames(indices, tensor$modes), values[valid], tensor_info(tensor)$dims, weights[valid])
  tensor
}

split_coo <- function(tensor, prefix, test = 0.1, valid = 0, seed = 0, last_per = NULL, by = NULL) {
  check_tensor(tensor)
  if (is.null(last_per) != is.null(by)) {
    bad_argument("last_per and by are given together: a mode of rows and a mode of times")
  }
  latest <- if (is.null(last_per)) NULL else c(mode_number(tensor, last_per, "last_per"), mode_number(tensor, by, "by"))
  check_folder(check_string(prefix, "prefix"))
  check_number(test, "test")
  check_number(valid, "valid")
  check_count(seed, "seed")
  split <- function(handle) .Call(r_coo_split, handle, prefix, test, valid, seed, latest)
  with_tensor_names(tensor, prefix, function() with_file(tensor, split))
  parts <- c("train", if (test > 0) "test", if (valid > 0) "valid")
  files <- paste0(prefix, ".", parts, ".coo")
  opened <- lapply(files, function(file) {
    part <- open_coo(file, modes = tensor$modes)
    part$labels <- tensor$labels
    part$spec <- tensor$spec
    part
  })
  names(opened) <- parts
  opened
}

check_tensor <- function(x) {
  if (!inherits(x, "coo_tensor")) {
    bad_argument("an object of class ", class(x)[1], " is not a coo_tensor; see as_coo_tensor()")
  }
}
