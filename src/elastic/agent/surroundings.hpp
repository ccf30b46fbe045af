// Environment and folder of the processes that an agent starts: the coordinator's, as far as this host has them.
#pragma once

#include <dtrain/base/process.hpp>

#include "wire.hpp"

namespace dtrain::elastic {

inline std::vector<std::string> workers_environment(const Welcome& welcome) {
  return welcome.keep_own ? with_variables(own_environment(), welcome.environment) : welcome.environment;
}

// A machine without the user's folder cannot resolve the user's relative paths, so the job folder takes its place.
// Checkpoints do not go there: a worker that sees another folder of --model-prefix than the coordinator ends before it
// joins.
inline Path workers_folder(const Welcome& welcome, const AgentOrder& order) {
  std::error_code error;
  return std::filesystem::is_directory(welcome.folder, error) ? welcome.folder : order.job_folder;
}

}  // namespace dtrain::elastic
