// What a program may want to know of an error besides its text.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::cli {

// An object of texts; null: there is nothing more to know.
Json error_details(const Error& error);

}  // namespace dtrain::cli
