// An error as it is shown with --json, and as one process of a job tells it to another.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain {

// {"kind": ..., "message": ..., "hint": ...}
Json error_to_json(const Error& error);

// Throws the error that was told: the catcher does with it what it would do with one of its own. A kind that this
// version does not know is an Error. Throws DataError if `told` is no such object.
[[noreturn]] void throw_error(const Json& told);

}  // namespace dtrain
