#include "kubernetes_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

// Names of pods are derived from it, and a label has at most 63 characters.
constexpr std::size_t kLongestName = 40;
constexpr double kLeastCpus = 0.1, kMostCpus = 1024;
constexpr int kMostPodGpus = 64;

bool is_label(const std::string& text, std::size_t longest) {
  const auto is_letter = [](unsigned char c) { return std::islower(c) != 0; };
  const auto is_of_label = [&](unsigned char c) { return is_letter(c) || std::isdigit(c) != 0 || c == '-'; };
  return !text.empty() && text.size() <= longest && is_letter(static_cast<unsigned char>(text.front())) &&
         text.back() != '-' && std::ranges::all_of(text, is_of_label);
}

// A number with a unit that Kubernetes knows: "500Mi".
std::string kubernetes_quantity(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  static const std::string_view known[] = {"", "M", "G", "T", "Mi", "Gi", "Ti"};
  if (digits > 0 && text.front() != '0' && std::ranges::find(known, unit) != std::end(known)) return text;
  throw UsageError(fmt::format("must be a number of bytes with a unit such as Mi or Gi, not '{}'", text));
}

Option& add_quantity(OptionSet& set, const char* flag, std::string& field, std::string help) {
  return set.add_custom(
      flag, "SIZE", std::move(help), [&field](const std::string& text) { field = kubernetes_quantity(text); },
      [&field] { return field; });
}

}  // namespace

void bind_kubernetes(OptionSet& set, KubernetesOptions& options) {
  set.group(kKubernetesGroup);
  set.add("--kube-image", options.image, "IMAGE",
          "container image with dtrain in its PATH; packaging/image.sh makes one")
      .not_from_project = true;
  set.add("--kube-name", options.name, "NAME", "name of the Job, the StatefulSet and the other objects");
  set.add("--kube-namespace", options.space, "NAME", "namespace of all objects (default that of the context)")
      .not_from_project = true;
  set.add("--kube-context", options.context, "NAME", "context of kubectl (default its current one)").not_from_project =
      true;
  set.add("--kube-claim", options.claim, "NAME",
          fmt::format("existing PersistentVolumeClaim, which all pods mount at {} for data, checkpoints and the job "
                      "folder. Several nodes must be able to write to it (default a new one, NAME of --kube-name)",
                      kPodFolder));
  add_quantity(set, "--kube-storage", options.storage, "size of the new claim");
  set.add("--kube-storage-class", options.storage_class, "NAME",
          "storage class of the new claim (default that of the cluster)");
  set.add("--kube-cpus", options.cpus, "N", "processors of each worker's pod", between(kLeastCpus, kMostCpus));
  add_quantity(set, "--kube-memory", options.memory, "memory of each worker's pod");
  set.add("--kube-gpus", options.gpus, "N", "NVIDIA GPUs of each worker's pod", between(0, kMostPodGpus));
  set.add("--kube-print", options.print, "print the manifests for `kubectl apply -f -`, and change nothing").flag_only =
      true;
}

void check_kubernetes(const KubernetesOptions& options) {
  if (options.image.empty()) {
    throw UsageError("--launcher kubernetes needs an image",
                     "add --kube-image IMAGE; packaging/image.sh makes one of a bundle");
  }
  if (options.image.find_first_of(" \t\n") != options.image.npos)
    throw UsageError(fmt::format("--kube-image {}: a name of an image has no blanks", options.image));
  if (!is_label(options.name, kLongestName)) {
    throw UsageError(fmt::format("--kube-name {}: Kubernetes does not take this name", options.name),
                     fmt::format("use at most {} lower-case letters, digits and -, with a letter first", kLongestName));
  }
}

}  // namespace dtrain::config
