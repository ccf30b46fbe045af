// What programs on many hosts say, as whole lines that name their host: never two hosts in one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/output_stream.hpp>
#include <dtrain/base/reporter.hpp>

namespace dtrain::cli {

// Each host's bytes come from one thread at a time; different hosts may come at once. `reporter` is touched only in
// here meanwhile, and must outlive this.
class HostLines {
 public:
  HostLines(std::vector<std::string> hosts, std::string schema, Reporter& reporter);

  void take(std::size_t host, OutputStream stream, std::string_view bytes);
  // The host says nothing more: a last line without its end is shown too.
  void finish(std::size_t host);
  // Anything else that is to be said meanwhile.
  template <typename Say>
  void say(Say say_it) {
    const MutexLock lock(mutex_);
    say_it(reporter_);
  }

 private:
  struct Unfinished {
    std::string output, error;
  };
  std::string& unfinished(std::size_t host, OutputStream stream);
  void show(std::size_t host, OutputStream stream, std::string_view lines);
  void show_line(std::size_t host, OutputStream stream, std::string_view line) DTRAIN_REQUIRES(mutex_);

  const std::vector<std::string> hosts_;
  const std::string schema_;
  std::vector<Unfinished> unfinished_;  // by host; each belongs to its host's thread
  Mutex mutex_;
  Reporter& reporter_ DTRAIN_GUARDED_BY(mutex_);
};

// How a command on many hosts ends by the code of launcher::sum_up(). With --json, one that failed on all of them
// throws the error that its caller looks for on the last line of stderr; what each host answered names its own.
ExitCode end_of_hosts(ExitCode code, const std::vector<std::string>& hosts, Reporter& reporter);

}  // namespace dtrain::cli
