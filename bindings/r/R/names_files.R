# Names of rows beside a data or model file, and of matrix columns beside a model file, as the command-line program writes and
# reads them. All files are complete under temporary names in the same folder before they replace others.

# The beginning of the names files of a data file: ratings.mode1.tsv belongs to ratings.coo.
data_stem <- function(path) sub("\\.[^./]*$", "", path)

names_title <- "index\tname"

# An error if the folder of a file that is to be written does not exist.
check_folder <- function(path) {
  if (!dir.exists(dirname(path))) raise("BAD_FILE", paste0(path, ": its folder does not exist; make it first"))
}

# Names of rows by the paths of their files; `what` is "mode", or "matrix" for columns.
names_files <- function(stem, labels, what = "mode") {
  stats::setNames(labels, sprintf("%s.%s%d.tsv", stem, what, seq_along(labels)))
}

# Does `write` between writing the names files and giving them their final names, so that nothing is replaced if they cannot
# be written. `files` are names by path. Then removes other names files of `what` ("mode", "matrix") beside `stem`: they belong
# to the file that was replaced.
with_names <- function(files, stem, write, what = "mode") {
  staged <- character()
  on.exit(unlink(staged, expand = FALSE))
  for (path in names(files)[lengths(files) > 0]) staged[path] <- stage_names(path, files[[path]])
  result <- write()
  for (path in names(staged)) {
    if (!is_own_file(path)) set_aside(path)
    commit_file(staged[[path]], path)
  }
  others <- setdiff(numbered_files(stem, what), basename(as.character(names(staged))))
  for (path in file.path(dirname(stem), others)) if (is_names_file(path)) remove_own(path, is_own_file)
  invisible(result)
}

# Existing files STEM.mode1.tsv and so on.
numbered_files <- function(stem, what) {
  found <- list.files(dirname(stem), all.files = TRUE)
  found <- found[startsWith(found, paste0(basename(stem), "."))]
  end <- substring(found, nchar(basename(stem)) + 1)
  found[grepl(paste0("^\\.(", paste(what, collapse = "|"), ")[0-9]+\\.tsv$"), end)]
}

# A file of another format is what a user calls the rows, and stays. A pipe has no size and is not read, which would wait.
is_names_file <- function(path) {
  if (!isTRUE(file.size(path) >= nchar(names_title)) || dir.exists(path)) return(FALSE)
  start <- tryCatch(suppressWarnings(readBin(path, raw(), nchar(names_title))), error = function(condition) raw())
  identical(start, charToRaw(names_title))
}

is_link <- function(path) isTRUE(nzchar(Sys.readlink(path), keepNA = TRUE))

# Whether this package, or a program with the same library, wrote a file. A link was not written, whatever it leads to.
is_own_file <- function(path) !is_link(path) && is_names_file(path)

# Removes a file of this package; whatever else is at the path is renamed.
remove_own <- function(path, is_own) if (is_own(path)) remove_file(path) else set_aside(path)

# Renames what is at a path, if anything is, to its name followed by .old, or .old2 and so on. A link is renamed itself.
set_aside <- function(path) {
  exists <- function(path) file.exists(path) || is_link(path)
  if (!exists(path)) return(invisible())
  old <- paste0(path, ".old")
  number <- 2
  while (exists(old)) {
    old <- paste0(path, ".old", number)
    number <- number + 1
  }
  if (!suppressWarnings(file.rename(path, old))) raise("SYSTEM", paste0(path, ": cannot be renamed"))
  signal_note("warning", paste0("a file that does not belong to the new one is now called ", old))
}

stage_names <- function(path, names, title = names_title) {
  lines <- c(title, paste0(sprintf("%d", seq_along(names)), "\t", encode_names(names, path)))
  stage_file(path, function(connection) {
    writeLines(lines, connection, useBytes = TRUE)
    sum(nchar(lines, "bytes") + 1)
  })
}

escapes <- c("\\\\" = "\\", "\\t" = "\t", "\\n" = "\n", "\\r" = "\r")

encode_names <- function(names, path) {
  names <- enc2utf8(as.character(names))
  wrong <- which(!validUTF8(names))
  if (length(wrong) > 0) bad_argument("name ", wrong[1], " of ", basename(path), " is not valid UTF-8")
  for (escape in names(escapes)) names <- gsub(escapes[[escape]], escape, names, fixed = TRUE)
  names
}

decode_names <- function(names) {
  found <- gregexpr("\\\\.", names)
  regmatches(names, found) <- lapply(regmatches(names, found), function(escape) {
    ifelse(escape %in% names(escapes), escapes[escape], escape)
  })
  names
}

# Names in the file of a mode beside a data or model file, or in another file if `mode` is NULL. A row without a name of its
# own has its number; the attribute "fault" is then the reason why rows cannot be matched by these names.
read_names <- function(path, mode = NULL) {
  names <- .Call(r_names_read, path, mode)
  if (is.null(names)) return(NULL)
  other <- which(is.na(names) | duplicated(names))
  if (length(other) == 0) return(names)
  first <- names[other[1]]
  fault <- if (is.na(first)) {
    paste("row", other[1], "has no name")
  } else {
    paste("rows", match(first, names), "and", other[1], "are both called", first)
  }
  names[other] <- paste0(ifelse(is.na(names[other]), "", names[other]), "#", other)
  structure(names, fault = fault)
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

remove_file <- function(path) {
  if (file.exists(path) && !suppressWarnings(file.remove(path))) raise("SYSTEM", paste0(path, ": cannot be removed"))
}
