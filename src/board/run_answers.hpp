// What the page asks about one run.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/net/http_server.hpp>

#include "catalog.hpp"
#include "target.hpp"

namespace dtrain::board {

// ?axis=steps|epochs|time&from=&to=&points=: curves, validations and resumes in this window.
net::HttpResponse series(const Run& run, const Target& target);
// ?after=SEQ: events with their sentences, the newest 5,000 of them.
Json events_of(const Run& run, const Target& target);
// The run as `dtrain plot` draws it. ?format=svg|png
net::HttpResponse picture_of(const Run& run, const Target& target);

}  // namespace dtrain::board
