// An error and what to do about it on one line, where a message has no line for the hint.
#pragma once

#include <string>

#include <dtrain/base/error.hpp>

namespace dtrain {

// "TEXT (HINT)"; the text alone where there is no hint.
inline std::string with_hint(const std::string& text, const std::string& hint) {
  return hint.empty() ? text : text + " (" + hint + ")";
}
inline std::string with_hint(const Error& error) { return with_hint(error.what(), error.hint()); }

}  // namespace dtrain
