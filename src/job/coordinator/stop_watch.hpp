// SIGINT and SIGTERM as a stop token, for work that threads do.
#pragma once

#include <stop_token>
#include <thread>

namespace dtrain::job {

class StopWatch {
 public:
  StopWatch();  // installs the handlers of base/stop.hpp
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace dtrain::job
