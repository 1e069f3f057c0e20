# Names of rows beside a data or model file, as the command-line program writes and reads them. All files are complete under
# temporary names in the same folder before they replace others.

# The beginning of the names files of a data file: ratings.mode1.tsv belongs to ratings.coo.
data_stem <- function(path) sub("\\.[^./]*$", "", path)

names_file <- function(stem, n) paste0(stem, ".mode", n, ".tsv")

# Does `write` between writing the names files and giving them their final names, so that nothing is replaced if they cannot
# be written.
with_names <- function(labels, stem, write) {
  staged <- character()
  on.exit(unlink(staged, expand = FALSE))
  for (n in which(lengths(labels) > 0)) {
    lines <- c("index\tname", paste0(sprintf("%d", seq_along(labels[[n]])), "\t", encode_names(labels[[n]], n)))
    staged[names_file(stem, n)] <- stage_file(names_file(stem, n), function(connection) {
      writeLines(lines, connection, useBytes = TRUE)
      sum(nchar(lines, "bytes") + 1)
    })
  }
  result <- write()
  for (path in names(staged)) commit_file(staged[[path]], path)
  invisible(result)
}

encode_names <- function(names, n) {
  names <- enc2utf8(as.character(names))
  wrong <- which(!validUTF8(names))
  if (length(wrong) > 0) bad_argument("the name of row ", wrong[1], " of mode ", n, " is not valid UTF-8")
  names <- gsub("\\", "\\\\", names, fixed = TRUE)
  names <- gsub("\t", "\\t", names, fixed = TRUE)
  names <- gsub("\n", "\\n", names, fixed = TRUE)
  gsub("\r", "\\r", names, fixed = TRUE)
}

# Writes a temporary file beside `path` and returns its path. `write` has a connection and returns the number of bytes.
stage_file <- function(path, write) {
  temporary <- tempfile(paste0(basename(path), "."), dirname(path), ".tmp")
  stage <- function() {
    connection <- file(temporary, "wb")
    expected <- tryCatch(write(connection), finally = close(connection))
    if (!isTRUE(file.size(temporary) == expected)) stop("only a part was written")
  }
  tryCatch(stage(), error = function(condition) file_failure(path, temporary, conditionMessage(condition)),
    warning = function(condition) file_failure(path, temporary, conditionMessage(condition)))
  temporary
}

commit_file <- function(temporary, path) {
  tryCatch(file.rename(temporary, path),
    warning = function(condition) file_failure(path, temporary, conditionMessage(condition)))
}

file_failure <- function(path, temporary, reason) {
  unlink(temporary, expand = FALSE)
  raise("SYSTEM", paste0(path, ": cannot be written: ", reason))
}
