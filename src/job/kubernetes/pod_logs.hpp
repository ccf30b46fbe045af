// The output of a pod as it is written, by `kubectl logs -f`.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include <dtrain/base/reporter.hpp>
#include <dtrain/launcher/kubectl.hpp>

namespace dtrain::job {

// A thread reads the lines of kubectl and passes them on. kubectl may end before the pod does, when its connection
// breaks: look() then starts it again, and lines that were shown are left out. All members are called by one thread.
class PodLogs {
 public:
  PodLogs(const launcher::Kubectl& kubectl, Reporter& reporter) : kubectl_(kubectl), reporter_(reporter) {}
  ~PodLogs();
  PodLogs(const PodLogs&) = delete;

  // Follows this pod from its beginning, unless it does already. The output of the pod before is shown to its end
  // first.
  void follow(const std::string& pod);
  const std::string& pod() const { return pod_; }
  // Starts kubectl again if it ended although the pod goes on.
  void look(bool is_over);
  // The pod is over, and all of its output has been shown.
  bool is_complete() const { return complete_; }

 private:
  void start();
  void read(int descriptor);
  void show(const std::string& line);

  const launcher::Kubectl& kubectl_;
  Reporter& reporter_;
  std::string pod_;
  pid_t process_ = 0;
  std::atomic<bool> ended_ = true;  // the thread has read everything
  std::string last_;                // time of the last line that was shown; the thread's until it has ended
  std::string shown_;               // the same when kubectl was started
  std::thread thread_;
  bool was_over_ = false;  // the pod was over when kubectl was started
  bool complete_ = false;
};

// A line of `kubectl logs --timestamps` without its time; `time` with nine digits behind the point, so that times
// compare as texts. Empty: the line has none.
struct TimedLine {
  std::string time, text;
};
TimedLine timed_line(const std::string& line);

}  // namespace dtrain::job
