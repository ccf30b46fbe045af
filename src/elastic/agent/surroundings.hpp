// Where the processes run that an agent starts: as the coordinator wants it, as far as this host has it.
#pragma once

#include <dtrain/base/process.hpp>

#include "wire.hpp"

namespace dtrain::elastic {

inline std::vector<std::string> workers_environment(const Welcome& welcome) {
  return welcome.keep_own ? with_variables(own_environment(), welcome.environment) : welcome.environment;
}

// What the person's folder was for, relative paths, cannot be had on a machine without it; the job folder is there.
inline Path workers_folder(const Welcome& welcome, const AgentJoin& join) {
  std::error_code error;
  return std::filesystem::is_directory(welcome.folder, error) ? welcome.folder : join.job_folder;
}

}  // namespace dtrain::elastic
