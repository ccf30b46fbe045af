#include "worker_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/job_files.hpp>

namespace dtrain::elastic {

std::string file_name_of(std::string host) {
  std::replace_if(
      host.begin(), host.end(),
      [](unsigned char c) {
        return !std::isalnum(c) && std::string_view("._@:[]-+$%").find(char(c)) == std::string::npos;
      },
      '_');
  return host;
}

Path worker_log(const Path& job_folder, const std::string& host, int slot) {
  return job_folder / job_file::kLogs / fmt::format("{}.{}.log", file_name_of(host), slot);
}

Path prepare_log(const Path& job_folder, const std::string& host) {
  return job_folder / job_file::kLogs / fmt::format("prepare_{}.log", file_name_of(host));
}

Path agent_log(const AgentOrder& order) {
  return Path(order.job_folder) / job_file::kLogs / fmt::format("agent_{}.log", file_name_of(order.host));
}

std::string program_starts(const WorkerJob& job) {
  const std::string key = hmac_sha256(job.token, fmt::format("the program of worker {} starts", job.worker));
  return fmt::format("\036dtrain {}: ", to_hex(key));
}

std::string WorkerOutput::add(OutputStream stream, std::string_view bytes) {
  return keep(stream, lines_[static_cast<std::size_t>(stream)].add(bytes, std::chrono::steady_clock::now()));
}

std::string WorkerOutput::end(OutputStream stream) {
  return keep(stream, lines_[static_cast<std::size_t>(stream)].end());
}

// A program may have ended inside the line that the mark ends.
std::string WorkerOutput::keep(OutputStream stream, std::string_view lines) {
  std::string shown;
  std::size_t logged = 0;
  const auto log_shown = [&] { file_.append(std::string_view(shown).substr(std::exchange(logged, shown.size()))); };
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + 1);
    const auto mark = start_mark_.empty() ? line.npos : line.find(start_mark_);
    const bool is_start = mark != line.npos;
    const std::string_view note = is_start ? line.substr(mark + start_mark_.size()) : "";
    line = line.substr(0, mark);
    if (!is_start || !line.empty()) shown.append(line) += '\n';
    if (is_start) {
      log_shown();
      begin_start(stream, note);
    } else {
      remember(stream, line);
    }
  }
  log_shown();
  return shown;
}

void WorkerOutput::remember(OutputStream stream, std::string_view line) {
  last_lines_.push_back({stream, std::string(line)});
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
}

// The note comes in both streams, of which one may be read two starts ahead of the other.
void WorkerOutput::begin_start(OutputStream stream, std::string_view note) {
  std::erase_if(last_lines_, [stream](const Line& line) { return line.stream == stream; });
  if (std::ranges::find(notes_, note) != notes_.end()) return;
  notes_.emplace_back(note);
  if (notes_.size() > kLastNotes) notes_.pop_front();
  file_.append_note(note);
}

std::vector<std::string> WorkerOutput::last_lines() const {
  std::vector<std::string> texts;
  for (const Line& line : last_lines_) texts.push_back(line.text);
  return texts;
}

}  // namespace dtrain::elastic
