#include "worker_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

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

std::string WorkerOutput::add(OutputStream stream, std::string_view bytes) {
  return keep(stream, lines_[static_cast<std::size_t>(stream)].add(bytes, std::chrono::steady_clock::now()));
}

std::string WorkerOutput::end(OutputStream stream) {
  return keep(stream, lines_[static_cast<std::size_t>(stream)].end());
}

// A program may have ended inside the line that the mark ends.
std::string WorkerOutput::keep(OutputStream stream, std::string_view lines) {
  std::string shown;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + 1);
    const bool is_start = line.ends_with(kProgramStarts);
    if (is_start) line.remove_suffix(kProgramStarts.size());
    if (!is_start || !line.empty()) shown.append(line) += '\n';
    if (is_start) {
      forget(stream);
    } else {
      remember(stream, line);
    }
  }
  file_.append(shown);
  return shown;
}

void WorkerOutput::remember(OutputStream stream, std::string_view line) {
  last_lines_.push_back({stream, std::string(line)});
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
}

void WorkerOutput::forget(OutputStream stream) {
  std::erase_if(last_lines_, [stream](const Line& line) { return line.stream == stream; });
}

std::vector<std::string> WorkerOutput::last_lines() const {
  std::vector<std::string> texts;
  for (const Line& line : last_lines_) texts.push_back(line.text);
  return texts;
}

}  // namespace dtrain::elastic
