# Every error of the package has the classes s3cmtf_STATUS, s3cmtf_error and error. The C code calls this function as well.
raise <- function(status, message) {
  classes <- c(paste0("s3cmtf_", status), "s3cmtf_error", "error", "condition")
  stop(structure(class = classes, list(message = message, call = NULL)))
}

bad_argument <- function(...) raise("BAD_ARGUMENT", paste0(...))

# Warnings and notes of the library during a fit.
signal_note <- function(event, text) {
  classes <- paste0("s3cmtf_", event)
  if (event == "warning") {
    warning(structure(class = c(classes, "warning", "condition"), list(message = text, call = NULL)))
  } else {
    message(structure(class = c(classes, "message", "condition"), list(message = paste0(text, "\n"), call = NULL)))
  }
}

# "a, b, c and 4 more"
enumerate <- function(x, most = 3) {
  shown <- paste(head(x, most), collapse = ", ")
  if (length(x) > most) paste0(shown, " and ", length(x) - most, " more") else shown
}

check_string <- function(x, name) {
  if (!is.character(x) || length(x) != 1 || is.na(x) || x == "") bad_argument(name, " must be one string that is not empty")
  x
}

check_path_or_null <- function(x, name) if (is.null(x)) NULL else check_string(x, name)

check_number <- function(x, name, min = 0) {
  if (!is.numeric(x) || length(x) != 1 || !is.finite(x) || x < min) {
    bad_argument(name, " must be one finite number", if (is.finite(min)) paste0(", at least ", min))
  }
  as.double(x)
}

# Doubles above 2^53 are not exact integers.
check_count <- function(x, name, min = 0) {
  if (!is.numeric(x) || length(x) != 1 || is.na(x) || x < min || x > 2^53 || x != trunc(x)) {
    bad_argument(name, " must be one whole number from ", min, " to 2^53")
  }
  as.double(x)
}

check_fraction <- function(x, name) {
  if (!is.numeric(x) || length(x) != 1 || is.na(x) || x <= 0 || x >= 1) {
    bad_argument(name, " must be one number above 0 and below 1")
  }
  as.double(x)
}

# The value of an argument whose default lists its values, by default the first of them.
check_choice <- function(x) {
  name <- deparse(substitute(x))
  choices <- eval(formals(sys.function(sys.parent()))[[name]])
  if (identical(x, choices)) return(choices[1])
  found <- if (is.character(x) && length(x) == 1) pmatch(x, choices) else NA
  if (is.na(found)) bad_argument(name, " must be one of ", paste0("\"", choices, "\"", collapse = ", "))
  choices[found]
}

check_flag <- function(x, name) {
  if (!is.logical(x) || length(x) != 1 || is.na(x)) bad_argument(name, " must be TRUE or FALSE")
  x
}

# Names of columns that are used must be those of one column.
check_unique <- function(names) {
  if (anyDuplicated(names)) bad_argument("two columns are named ", names[anyDuplicated(names)])
}

check_no_dots <- function(...) {
  if (...length() == 0) return()
  names <- names(list(...))
  bad_argument("unused argument", if (any(names != "")) paste0(": ", enumerate(names[names != ""])))
}
