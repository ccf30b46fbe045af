#include "log_merge.hpp"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <queue>
#include <vector>

#include <dtrain/base/error.hpp>

namespace dtrain::job {
namespace {

constexpr std::string_view kEnding = ".log";

struct LaterFirst {
  bool operator()(const LogSource* a, const LogSource* b) const {
    return a->time() != b->time() ? a->time() > b->time() : a->name() > b->name();
  }
};

}  // namespace

struct LinePattern::Compiled {
  regex_t regex{};
  ~Compiled() { ::regfree(&regex); }
};

LinePattern::LinePattern(const std::string& text) {
  if (text.find_first_of(".[]()*+?{}|^$\\") == text.npos) {
    plain_ = text;
    return;
  }
  compiled_ = std::make_unique<Compiled>();
  const int error = ::regcomp(&compiled_->regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (error == 0) return;
  char reason[256];
  ::regerror(error, &compiled_->regex, reason, sizeof reason);
  throw UsageError(fmt::format("--grep {}: {}", text, reason),
                   "it is a POSIX extended regular expression, as of grep -E");
}

LinePattern::~LinePattern() = default;

bool LinePattern::matches(std::string_view line) const {
  if (!compiled_) return line.find(plain_) != line.npos;
  regmatch_t part{.rm_so = 0, .rm_eo = static_cast<regoff_t>(line.size())};
  return ::regexec(&compiled_->regex, line.data(), 1, &part, REG_STARTEND) == 0;
}

void LogMerge::find_sources() {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(kEnding) || sources_.contains(name)) continue;
    auto source = std::make_unique<LogSource>(entry->path());
    if (!source->host().empty()) hosts_.insert(source->host());
    const bool wanted = choice_.host.empty() || source->host() == choice_.host;
    if (wanted) sources_.emplace(name, std::move(source));
  }
}

bool LogMerge::chosen(const LogSource& line) const {
  const bool is_in_time = line.time().empty() || line.time() >= choice_.since;
  return (!choice_.rank || line.rank() == *choice_.rank) && is_in_time &&
         (!choice_.pattern || choice_.pattern->matches(line.line()));
}

bool LogMerge::poll(const std::function<void(const LogSource& line)>& take) {
  find_sources();
  std::priority_queue<LogSource*, std::vector<LogSource*>, LaterFirst> waiting;
  for (const auto& [name, source] : sources_) {
    if (source->next()) waiting.push(source.get());
  }
  const bool any = !waiting.empty();
  while (!waiting.empty()) {
    LogSource* const first = waiting.top();
    waiting.pop();
    if (first->rank() >= 0) ranks_.insert(first->rank());
    if (chosen(*first)) take(*first);
    if (first->next()) waiting.push(first);
  }
  return any;
}

void LogMerge::end() {
  for (const auto& [name, source] : sources_) source->end();
}

}  // namespace dtrain::job
