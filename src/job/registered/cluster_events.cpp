#include "cluster_events.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::job {
namespace {

constexpr const char* kEvents = "events.jsonl";
constexpr std::size_t kMostEvents = 100;

}  // namespace

void append_event(const Path& folder, const std::string& text) {
  elastic::EventLog events(folder / kEvents, kReadableFile);
  events.append(Json::object({{"event", text}}), std::chrono::system_clock::now());
}

Json read_events(const Path& folder) {
  Json events = Json::array();
  if (!is_listed(folder / kEvents)) return events;
  std::vector<std::string> lines = split(read_file(folder / kEvents), '\n');
  std::erase(lines, "");
  const std::size_t first = lines.size() > kMostEvents ? lines.size() - kMostEvents : 0;
  for (std::size_t i = first; i < lines.size(); ++i) {
    try {
      events.push_back(Json::parse(lines[i], kEvents));
    } catch (const DataError&) {  // torn by a full disk
    }
  }
  return events;
}

}  // namespace dtrain::job
