// What --launcher kubernetes asks of the cluster.
#pragma once

#include <string>

#include "option_set.hpp"

namespace dtrain::config {

struct KubernetesOptions {
  std::string image;             // needed
  std::string name = "dtrain";   // of all objects
  std::string space;             // namespace; empty: the context's
  std::string context;           // of kubectl; empty: its current one
  std::string claim;             // existing claim of the shared volume; empty: one is made
  std::string storage = "50Gi";  // of the claim that is made
  std::string storage_class;     // of the claim that is made; empty: the cluster's default
  std::string memory = "4Gi";    // of a worker
  double cpus = 2;               // of a worker
  int gpus = 0;                  // of a worker
  bool print = false;
};

// The folder of the shared volume in all pods.
constexpr const char* kPodFolder = "/work";
constexpr const char* kKubernetesGroup = "Kubernetes";  // of the options in help

void bind_kubernetes(OptionSet& set, KubernetesOptions& options);
// Throws UsageError for names that Kubernetes refuses, and without an image.
void check_kubernetes(const KubernetesOptions& options);

}  // namespace dtrain::config
