#include <dtrain/launcher/kubectl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {
namespace {

constexpr std::chrono::seconds kCallDeadline{120};
constexpr std::size_t kLongestError = 500;
constexpr const char* kContextHint =
    "`kubectl config get-contexts` lists them; choose one with --kube-context, or set KUBECONFIG";

}  // namespace

Kubectl::Kubectl(const std::string& folders, std::string context, std::string space)
    : program_(find_program("kubectl", folders,
                            "install kubectl (Debian: kubernetes-client), or print the manifests with --kube-print and "
                            "apply them elsewhere")),
      context_(std::move(context)),
      space_(std::move(space)) {
  check_context();
}

void Kubectl::check_context() const {
  if (context_.empty()) {
    const ProgramAnswer current = answer({"config", "current-context"}, {});
    if (current.code == 0 && !trim(current.output).empty()) return;
    throw UsageError("--launcher kubernetes: kubectl has no current context, so it knows no cluster", kContextHint);
  }
  if (answer({"config", "get-contexts", context_}, {}).code == 0) return;
  throw UsageError(fmt::format("--kube-context {}: kubectl's configuration has no such context", context_),
                   kContextHint);
}

std::vector<std::string> Kubectl::command(const std::vector<std::string>& words) const {
  std::vector<std::string> command = {program_.string()};
  if (!context_.empty()) command.push_back("--context=" + context_);
  if (!space_.empty()) command.push_back("--namespace=" + space_);
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

ProgramAnswer Kubectl::answer(const std::vector<std::string>& words, const std::string& input) const {
  const FileDescriptor text = memory_file(input);
  Spawn child = spawn_of(command(words));
  child.environment = own_environment();
  child.input = text.get();
  if (auto said = try_asking(std::move(child), kCallDeadline)) return std::move(*said);
  throw RemoteError(fmt::format("kubectl {} did not end within {} s", words.front(), kCallDeadline.count()),
                    "`kubectl cluster-info` shows whether the cluster answers");
}

std::string Kubectl::call(const std::vector<std::string>& words, const std::string& input) const {
  ProgramAnswer said = answer(words, input);
  if (said.code == 0) return std::move(said.output);
  throw RemoteError(
      fmt::format("kubectl {}: {}", words.front(), kubectl_error(said.errors)),
      "`kubectl cluster-info` shows whether the cluster answers, and `kubectl auth can-i --list` what you "
      "may do there");
}

Json Kubectl::get(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {"get"};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"-o", "json"});
  return Json::parse(call(all), "kubectl's answer");
}

std::string shown_command(const std::vector<std::string>& command) {
  std::string line = "kubectl";
  for (const std::string& word : command | std::views::drop(1)) {
    std::string rest = word;
    std::erase(rest, '=');  // a plain character, but in the first word
    line += " " + (rest == net::shell_quoted(rest) ? word : net::shell_quoted(word));
  }
  return line;
}

std::string kubectl_error(std::string_view said) {
  constexpr std::string_view kLeads[] = {"error: ", "Error from server: "};
  std::string text;
  for (std::string_view line : split(said, '\n')) {
    line = trim(line);
    for (const std::string_view lead : kLeads) {
      if (line.starts_with(lead)) line.remove_prefix(lead.size());
    }
    if (!line.empty()) text += (text.empty() ? "" : "; ") + std::string(line);
  }
  return text.empty() ? "it failed without a word" : text.substr(0, kLongestError);
}

}  // namespace dtrain::launcher
