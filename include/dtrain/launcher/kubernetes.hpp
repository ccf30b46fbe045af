// A training on Kubernetes as objects of its API. Pure: nothing is read and nothing is sent.
//
// The workers are the pods of a StatefulSet, because `kubectl scale` changes their number while they train and each has
// a name that it keeps. `dtrain hosts join` runs in each of them. The coordinator is the pod of a Job, so that the
// training ends with a status. Both find each other in the job folder on a shared volume. That folder also has the
// job's token, which the coordinator makes, so no object of the API holds it. Values of variables are in a Secret.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::launcher {

// The name of the container that runs dtrain in each pod. A cluster may add containers, such as the proxy of a service
// mesh, which run on after it.
inline constexpr const char* kContainer = "dtrain";

// The variable is set in the coordinator's pod. A training that a command stops there ends with these codes in place of
// 75 and, where nothing was saved, 1: after those the Job makes its next pod, as it should after an eviction.
inline constexpr const char* kPodVariable = "DTRAIN_POD";
inline constexpr int kStoppedInPod = 76, kStoppedUnsavedInPod = 77;
// After these another pod would end in the same way: a mistake in the command, a stop, and no progress.
inline constexpr std::array<int, 4> kFinalCodes = {static_cast<int>(ExitCode::usage), kStoppedInPod,
                                                   kStoppedUnsavedInPod, static_cast<int>(ExitCode::no_progress)};

struct KubernetesJob {
  std::string name;   // of every object
  std::string space;  // namespace; empty: that of kubectl's context
  std::string image;
  std::vector<std::string> command;      // of the coordinator, after "dtrain"
  std::vector<std::string> environment;  // of the coordinator: NAME=value, in a Secret
  int workers = 1;
  double cpus = 1;                      // of a worker
  std::string memory;                   // of a worker, as Kubernetes writes it
  int gpus = 0;                         // of a worker
  std::string claim;                    // existing claim of the shared volume; empty: one is made
  std::string storage, storage_class;   // of the claim that is made
  std::string mount;                    // folder of the shared volume in the pods
  std::string job_folder;               // there
  std::chrono::seconds time_to_end{0};  // that the programs of workers may take to save and end
};

std::vector<Json> kubernetes_objects(const KubernetesJob& job);
// From the request to end the coordinator's pod until Kubernetes kills it.
std::chrono::seconds coordinator_grace(const KubernetesJob& job);
// The name of the Secret, which is there if the job has variables.
std::string kubernetes_secret(const std::string& name);

// The labels of all objects of a job, "a=b,c=d", for `kubectl -l`; with `component` those of "worker" or "coordinator".
std::string kubernetes_selector(const std::string& name, const std::string& component = {});

// One document for each object. Texts stand in double quotes, as in JSON.
std::string to_yaml(const std::vector<Json>& documents);

}  // namespace dtrain::launcher
