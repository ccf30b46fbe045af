// An EMR cluster that is there, as programs know it that were written for EMR: what metadata_setup.sh did.
#pragma once

#include <string>
#include <vector>

#include "cluster_cloud.hpp"

namespace dtrain::cli {

struct EmrAdoption {
  std::string id;                                 // "j-..."; empty: none is meant
  std::string workers_file = "~/worker_ip_file";  // "~/" is the home here, and on each worker that of `login`
  std::string login = "hadoop";
  bool everywhere = false;
};
void bind(config::OptionSet& set, EmrAdoption& adoption);

struct AdoptedEmr {
  std::vector<std::string> variables;  // NAME=value
  ExitCode code = ExitCode::ok;        // of the copies on the workers
};
// Writes the workers file, here and everywhere if that is asked for. Throws UsageError, Error, what AwsCalls throws.
AdoptedEmr adopt_emr(net::AwsCalls& aws, const EmrAdoption& adoption, Reporter& reporter);

}  // namespace dtrain::cli
