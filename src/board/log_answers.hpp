// The logs of a job's workers: which there are, their newest lines, and a search in them.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

#include "files.hpp"
#include "target.hpp"

namespace dtrain::board {

// {"logs": [{"name", "size"}]} of the folder of a run.
Json logs_of(Files& files, const std::string& folder);

// ?name=w1.0.log&from=BYTE: at most 256 KiB from there on, or the last lines without from; {"from", "next", "size",
// "text", "cut"}. The last line may be unfinished: the text from "next" on continues it. ?search=WORDS: lines of the
// whole log that have them in any case, {"matches": [{"line", "text"}], "more"}; only the first MiB of a line is
// searched. Throws Missing where there is no such log.
Json log_of(Files& files, const std::string& folder, const Target& target);

}  // namespace dtrain::board
