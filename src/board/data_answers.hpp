// What a run is trained on: its records by class, and a picture of the first of them.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/net/http_server.hpp>

#include "model_answers.hpp"

namespace dtrain::board {

// {"files", "records", "bytes", "classes": [{"label", "name", "records"}], "warning"}; the warning says why the classes
// have no names, or is empty. Throws Missing where train.toml names no records or is not this user's own, DataError
// where they are not there.
Json data_of(const RunPlace& run);

// A PNG of the first training images, augmented as train.toml says.
net::HttpResponse sheet_of(const RunPlace& run);

}  // namespace dtrain::board
