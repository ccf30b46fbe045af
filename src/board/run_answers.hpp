// What the page asks about one run.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/net/http_server.hpp>

#include "catalog.hpp"
#include "target.hpp"

namespace dtrain::board {

// ?axis=steps|epochs|time&from=&to=&points=: curves, validations, resumes and changes of members in this window. The
// lines that are read from the file for it are read without the run, for which others may wait.
class Series {
 public:
  Series(const Run& run, const Target& target);
  net::HttpResponse answer(Files& files);

 private:
  const Window window_;
  const std::string path_;
  Levels levels_;
  std::optional<LinesWanted> wanted_;
  std::string more_;  // members behind the curves
};
// ?after=SEQ: events with their sentences, the newest 5,000 of them.
Json events_of(const Run& run, const Target& target);
// The run as `dtrain plot` draws it, from its files. ?format=svg|png
net::HttpResponse picture_of(const std::string& folder, const std::string& name, const std::vector<Json>& events,
                             Files& files, const Target& target);

}  // namespace dtrain::board
