// The JSON form of an error: for --json, and between the processes of a job.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain {

// {"kind": ..., "message": ..., "hint": ...}
Json error_to_json(const Error& error);

// Throws the error in the type that its kind names, so that a catcher handles it like a local one. A kind that this
// version does not know is an Error. Throws DataError if `json` is no such object.
[[noreturn]] void throw_error(const Json& json);

}  // namespace dtrain
