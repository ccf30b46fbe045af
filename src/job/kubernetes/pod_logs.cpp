#include "pod_logs.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/launcher/kubernetes.hpp>

namespace dtrain::job {
namespace {

constexpr std::size_t kFraction = 9, kSecond = 19;  // "2026-01-02T03:04:05"

}  // namespace

TimedLine timed_line(const std::string& line) {
  const std::size_t end = line.find(' ');
  const std::string time = line.substr(0, end);
  if (time.size() <= kSecond || time[kSecond - 9] != 'T' || time.back() != 'Z') return {{}, line};
  std::string fraction = time[kSecond] == '.' ? time.substr(kSecond + 1, time.size() - kSecond - 2) : "";
  fraction.resize(kFraction, '0');
  return {fmt::format("{}.{}Z", time.substr(0, kSecond), fraction), end == line.npos ? "" : line.substr(end + 1)};
}

PodLogs::~PodLogs() {
  if (!ended_) ::kill(process_, SIGKILL);
  if (thread_.joinable()) thread_.join();
}

void PodLogs::follow(const std::string& pod) {
  if (pod == pod_) return;
  if (!pod_.empty() && !complete_) return;
  pod_ = pod;
  last_.clear();
  complete_ = was_over_ = false;
}

void PodLogs::look(bool is_over) {
  if (pod_.empty() || complete_ || !ended_) return;
  if (thread_.joinable()) {
    thread_.join();
    complete_ = was_over_;
    if (complete_) return;
  }
  was_over_ = is_over;
  start();
}

void PodLogs::start() {
  std::vector<std::string> words = {"logs", "--follow", "--timestamps",
                                    std::string("--container=") + launcher::kContainer};
  shown_ = last_;
  if (!last_.empty()) words.push_back("--since-time=" + last_);
  words.push_back(pod_);
  Pipe pipe = make_pipe();
  Spawn child = spawn_of(kubectl_.command(words));
  child.environment = own_environment();
  child.output = pipe.write_end.get();
  process_ = spawn(child);
  ended_ = false;
  thread_ = std::thread([this, end = pipe.read_end.release()] { read(end); });
}

void PodLogs::read(int descriptor) {
  std::unique_ptr<FILE, decltype(&std::fclose)> stream(::fdopen(descriptor, "r"), &std::fclose);
  std::unique_ptr<char, decltype(&std::free)> buffer(nullptr, &std::free);
  char* line = nullptr;
  std::size_t capacity = 0;
  for (ssize_t size = 0; (size = ::getline(&line, &capacity, stream.get())) > 0;) {
    show(std::string(line, static_cast<std::size_t>(line[size - 1] == '\n' ? size - 1 : size)));
  }
  buffer.reset(line);
  wait_for_end(process_);
  ended_ = true;
}

void PodLogs::show(const std::string& line) {
  const TimedLine timed = timed_line(line);
  if (!timed.time.empty() && timed.time <= shown_) return;
  if (!timed.time.empty()) last_ = timed.time;
  reporter_.pass_on(timed.text);
}

}  // namespace dtrain::job
