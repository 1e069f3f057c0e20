concepts <- function(object, mode, n = 10, min_entries = 1, given = list()) {
  check_model(object)
  number <- mode_number(object, mode)
  queries <- given_rows(object, number, given)
  if (any(lengths(queries) > 1)) bad_argument("concepts are given for one row of a mode")
  modes <- which(lengths(queries) == 1)
  found <- .Call(r_concepts, object$handle, number, check_count(n, "n", 1), check_count(min_entries, "min_entries", 1),
    as.double(modes), as.double(unlist(queries[modes])))
  end <- function(x) factor(ifelse(x > 0, "largest", "smallest"), levels = c("largest", "smallest"))
  rows <- as.data.frame(found$rows)
  rows$end <- end(rows$end)
  rows$row <- name_rows(object$labels[[number]], found$rows$row)
  columns <- as.data.frame(found$columns)
  columns$end <- end(columns$end)
  columns$column <- column_names(object, columns$matrix, columns$column)
  columns$matrix <- names(object$columns)[columns$matrix]
  table <- as.data.frame(found$concepts)
  table$sign_flipped <- table$sign_flipped == 1
  profile <- found$profile
  if (!is.null(profile)) {
    profile <- matrix(profile$numbers, ncol = profile$columns, byrow = TRUE)
    attr(profile, "mode") <- object$modes[found$profile$mode]
  }
  structure(
    list(mode = object$modes[number], given = given, concepts = table, rows = rows, columns = columns, profile = profile),
    class = "s3cmtf_concepts"
  )
}

# Names of columns of matrices, as far as they have names.
column_names <- function(object, matrix, column) {
  names <- as.character(column)
  for (i in unique(matrix)) {
    here <- matrix == i
    names[here] <- as.character(name_rows(object$columns[[i]], column[here]))
  }
  names
}

print.s3cmtf_concepts <- function(x, n = 3, ...) {
  cat("concepts of mode ", x$mode, "\n", sep = "")
  for (i in seq_len(nrow(x$concepts))) {
    concept <- x$concepts[i, ]
    cat(i, ". concept ", concept$concept, ": strength ", format(concept$strength, digits = 3), ", effect ",
      format(concept$effect, digits = 3), "\n", sep = "")
    columns <- x$columns[x$columns$concept == concept$concept & x$columns$end == "largest", ]
    if (nrow(columns) > 0) {
      shares <- sprintf("%+.2f", head(columns$share, n))
      cat("   with     ", paste(head(columns$column, n), shares, collapse = ", "), "\n", sep = "")
    }
    for (end in levels(x$rows$end)) {
      rows <- head(x$rows[x$rows$concept == concept$concept & x$rows$end == end, ], n)
      if (nrow(rows) == 0) next
      cat(sprintf("   %-8s ", end), paste(rows$row, sprintf("%+.2f", rows$loading), collapse = ", "), "\n", sep = "")
    }
  }
  invisible(x)
}
