#include "worker_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include <dtrain/base/text.hpp>
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
  return keep(lines_[static_cast<std::size_t>(stream)].add(bytes, std::chrono::steady_clock::now()));
}

std::string WorkerOutput::end(OutputStream stream) { return keep(lines_[static_cast<std::size_t>(stream)].end()); }

std::string WorkerOutput::keep(std::string lines) {
  file_.append(lines);
  if (lines.empty()) return lines;
  for (std::string& line : split(std::string_view(lines).substr(0, lines.size() - 1), '\n')) {
    last_lines_.push_back(std::move(line));
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  return lines;
}

}  // namespace dtrain::elastic
