// The logs of a job's workers: which there are, their newest lines, and a search in them.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

#include "files.hpp"
#include "target.hpp"

namespace dtrain::board {

// {"logs": [{"name", "size"}]} of the folder of a run.
Json logs_of(Files& files, const std::string& folder);

// ?name=w1.0.log&from=BYTE: whole lines from there on, or the last ones without from, or 256 KiB of a longer line;
// {"from", "next", "size", "text", "cut"}. ?search=WORDS: lines of the whole log that have them in any case,
// {"matches": [{"line", "text"}], "more"}. Throws Missing where there is no such log.
Json log_of(Files& files, const std::string& folder, const Target& target);

}  // namespace dtrain::board
