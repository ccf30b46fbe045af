#include "prefix_claim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/train/weights.hpp>

#include "config/checkpoint_choice.hpp"
#include "job_client.hpp"
#include "prefix_owner.hpp"
#include "shared_folders.hpp"

namespace dtrain::job {
namespace {

constexpr const char* kOption = "--model-prefix";

[[noreturn]] void refuse(const std::string& found) {
  throw UsageError(
      found,
      "--resume continues the newest complete checkpoint, --force trains again and replaces what is there; "
      "or choose another --model-prefix");
}

// A run from --load-epoch N continues what is not newer than epoch N.
bool is_continued(const train::CheckpointName& newest, const config::TrainOptions& options) {
  if (options.resume) return true;
  if (!options.load_epoch) return false;
  return std::tuple(newest.epoch, newest.step) <= std::tuple(static_cast<std::uint32_t>(*options.load_epoch), 0u);
}

// The newest parameters in MXNet's format, which may have no manifest; nullopt: none, or only those of epoch 0, with
// which a run begins.
std::optional<train::CheckpointName> newest_params(const Path& prefix, const train::SharedStore& store) {
  const std::vector<std::uint32_t> epochs = train::list_mxnet(prefix, store).epochs;
  if (epochs.empty() || epochs.front() == 0) return std::nullopt;
  return train::CheckpointName{prefix, epochs.front()};
}

bool are_newest(const std::optional<train::CheckpointName>& params, const std::vector<train::CheckpointName>& names) {
  return params && (names.empty() || params->epoch > names.front().epoch);
}

std::string file_of_params(const train::CheckpointName& name) { return name.stem() + ".params"; }

// Compares the files themselves: another text may lead to the same one, as an absolute path does, one with "..", or one
// through a symbolic link. Behind URLs there is nothing but the text.
bool has_file(const Path& stem, const Path& file) {
  if (data::is_remote(stem) || data::is_remote(file))
    return stem.lexically_normal() == Path(file).replace_extension().lexically_normal();
  constexpr std::array<const char*, 3> kEndings = {".safetensors", ".json", ".params"};
  return std::ranges::any_of(kEndings, [&](const char* ending) {
    std::error_code not_there;
    return std::filesystem::equivalent(stem.string() + ending, file, not_there);
  });
}

// The run would remove what it began with, and workers that start later read it again. Tensors without their manifest
// are no checkpoint, but a save of the same name replaces them too.
void refuse_own_weights(const std::vector<train::CheckpointName>& names, const config::TrainOptions& options,
                        const train::SharedStore& store) {
  if (!options.pretrained.file) return;
  const Path weights = train::file_of_weights(*options.pretrained.file);
  std::vector<Path> stems;
  for (const train::CheckpointName& name : names) stems.emplace_back(name.stem());
  for (Path orphan : train::orphaned_tensors(*options.model_prefix)) stems.push_back(orphan.replace_extension());
  for (const std::uint32_t epoch : train::list_mxnet(*options.model_prefix, store).epochs) {
    if (epoch > 0) stems.emplace_back(train::CheckpointName{*options.model_prefix, epoch}.stem());
  }
  if (std::ranges::none_of(stems, [&](const Path& stem) { return has_file(stem, weights); })) return;
  throw UsageError(fmt::format("--force: replaces {}, the weights of --pretrained", weights.string()),
                   "choose another --model-prefix");
}

void prepare_to_replace(const std::vector<train::CheckpointName>& names, const config::TrainOptions& options,
                        const train::SharedStore& store, Reporter& reporter) {
  refuse_own_weights(names, options, store);
  if (options.dry_run) return;
  const auto params = newest_params(*options.model_prefix, store);
  const bool params_are_newest = are_newest(params, names);
  if (names.empty() && !params) return;
  const train::CheckpointName& newest = params_are_newest ? *params : names.front();
  if (is_continued(newest, options)) return;
  reporter.note(fmt::format(
      "--force: replaces the checkpoints of {} up to {}; those later than the first that this run saves are "
      "removed once it is saved",
      options.model_prefix->string(), params_are_newest ? file_of_params(newest) : newest.stem()));
}

// A run in MXNet's format would write over them. What --resume continues is dtrain's own; later parameters beside it
// are those of a save that was cut off.
void refuse_params(const std::vector<train::CheckpointName>& names, const config::TrainOptions& options,
                   const train::SharedStore& store) {
  const auto params = newest_params(*options.model_prefix, store);
  if (!are_newest(params, names)) return;
  const bool has_nothing_to_resume = options.resume && names.empty();
  if (!has_nothing_to_resume && is_continued(*params, options)) return;
  throw UsageError(fmt::format("--model-prefix {}: has parameters in MXNet's format {}, the newest are {}",
                               options.model_prefix->string(),
                               options.resume ? "and no checkpoint to resume" : "already", file_of_params(*params)),
                   fmt::format("--load-epoch {} begins with them, --force trains again and replaces what is there; or "
                               "choose another --model-prefix",
                               params->epoch));
}

void settle_earlier_checkpoints(const config::TrainOptions& options, const train::SharedStore& store,
                                Reporter& reporter) {
  if (options.epochs == 0) return;
  const Path& prefix = *options.model_prefix;
  const auto names = train::list_checkpoints(prefix, store);
  if (names.empty()) config::refuse_prefix_of_file(prefix, kOption);
  if (options.force) return prepare_to_replace(names, options, store, reporter);
  if (!names.empty() && !is_continued(names.front(), options)) {
    const std::string found = fmt::format("--model-prefix {}: has checkpoints already, the newest is {}",
                                          prefix.string(), names.front().stem());
    if (!options.load_epoch) refuse(found);
    const train::CheckpointName chosen{prefix, static_cast<std::uint32_t>(*options.load_epoch)};
    throw UsageError(found, fmt::format("copy {}.* to another prefix and train on there, or --force replaces the "
                                        "checkpoints after it",
                                        chosen.stem()));
  }
  const bool begins_here = names.empty() && !options.load_epoch;
  const auto orphans = begins_here ? train::orphaned_tensors(prefix) : std::vector<Path>();
  if (!orphans.empty()) {
    refuse(fmt::format("--model-prefix {}: {} is there without its manifest, the .json file beside it", prefix.string(),
                       orphans.front().string()));
  }
  refuse_params(names, options, store);
}

std::string start_of_names(const Path& prefix) { return prefix.filename().string() + "-"; }

// What a job writes into the lock: agents and workers live on when its coordinator, which holds the lock, is lost.
std::string folder_of_job(const config::JobOptions& job) {
  return job.is_job() ? std::filesystem::absolute(job.folder).lexically_normal().string() : std::string();
}

[[noreturn]] void refuse_other_run(const Path& prefix, const std::string& option, const PrefixOwner& owner) {
  const std::string who = describe_owner(owner);
  throw Error(fmt::format("{} {}: another run is writing its checkpoints there{}", option, prefix.string(),
                          who.empty() ? "" : fmt::format(" ({})", who)),
              fmt::format("wait for its end, or choose another {}", option));
}

// nullopt: there is none, as far as this machine sees.
std::optional<CoordinatorFile> coordinator_of_owner(const PrefixOwner& owner) {
  try {
    return read_coordinator({owner.job_folder});
  } catch (const Error&) {  // the folder does not answer, it is another user's, or the file is damaged
    return std::nullopt;
  }
}

// The lock of a job that lost its first coordinator may be free, and so may that of a job on other machines where the
// file system keeps locks to one machine. A process that trains alone lives no longer than its lock. The job in the own
// folder is left to refuse_living_job().
void refuse_living_owner(const Path& prefix, const std::string& option, const PrefixOwner& owner,
                         const std::string& own, Reporter* reporter) {
  if (owner.job_folder.empty() || owner.job_folder == own) return;
  const JobFolder folder{owner.job_folder};
  const auto file = coordinator_of_owner(owner);
  if (!file) {
    const bool is_elsewhere = !owner.host.empty() && owner.host != host_name();
    if (reporter != nullptr && is_elsewhere) {
      reporter->note(
          fmt::format("{} {}: the last run there ({}) counts as ended: its lock is free, and this machine sees "
                      "no job in its folder",
                      option, prefix.string(), describe_owner(owner)));
    }
    return;
  }
  if (file->over()) return;
  const bool is_led = answers(*file);
  if (!is_led && has_agents_of_unfinished_job(folder)) {
    throw without_coordinator(
        fmt::format("{} {}: the job in {} saves there", option, prefix.string(), owner.job_folder), folder);
  }
  if (is_led || has_living_job(folder)) refuse_other_run(prefix, option, owner);
}

// A job that may go on in the own folder keeps its token, by which its hosts know the prefix: refuse_living_job() has
// yet to find out whether it does.
std::string token_for(const PrefixOwner& before, const std::string& own) {
  constexpr std::size_t kTokenSize = 16;
  if (!own.empty() && before.job_folder == own && !before.token.empty()) {
    const auto file = coordinator_of_owner(before);
    if (file && !file->over()) return before.token;
  }
  return to_hex(unpredictable_bytes(kTokenSize));
}

// A name that is too long would only show when the first checkpoint is saved.
void require_short_names(const Path& prefix, const std::string& option) {
  const Path folder = prefix.has_parent_path() ? prefix.parent_path() : Path(".");
  const long most = ::pathconf(folder.c_str(), _PC_NAME_MAX);
  const train::CheckpointName longest{prefix, 9999, 99'999'999};
  const std::size_t length = Path(longest.stem() + ".safetensors").filename().string().size();
  if (most <= 0 || length <= static_cast<std::size_t>(most)) return;
  throw UsageError(
      fmt::format("{} {}: the names of its files would be of up to {} bytes, and the file system allows {}", option,
                  prefix.string(), length, most),
      "choose a shorter name");
}

void prepare_folder(const Path& prefix, const std::string& option) {
  make_folder(prefix.parent_path());
  require_short_names(prefix, option);
}

// `own`: as of folder_of_job(). Throws Error if a run writes there.
FileLock lock_for(const Path& prefix, const std::string& option, const std::string& own, Reporter* reporter) {
  auto lock = FileLock::take(owner_file(prefix), option);
  const PrefixOwner before = read_owner(prefix);
  if (!lock) refuse_other_run(prefix, option, before);
  refuse_living_owner(prefix, option, before, own, reporter);
  return std::move(*lock);
}

// Whether no lock is possible: its file is another user's, who lets no other write it, or the file system has none.
bool lacks_locks(const Path& prefix) {
  const FileDescriptor file(::open(owner_file(prefix).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return errno == EACCES;
  return ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno != EWOULDBLOCK;
}

// Jobs on other machines train without a lock where none is possible, as they did before there was one.
PrefixClaim claim_for(const Path& prefix, const config::JobOptions& job, Reporter& reporter) {
  prepare_folder(prefix, kOption);
  const std::string own = folder_of_job(job);
  if (job.is_on_other_machines() && lacks_locks(prefix)) {
    refuse_living_owner(prefix, kOption, read_owner(prefix), own, &reporter);
    reporter.note(fmt::format(
        "{} {}: {} cannot be locked, so dtrain does not notice other runs there, nor hosts with another such folder",
        kOption, prefix.string(), owner_file(prefix).string()));
    return {};
  }
  FileLock lock = lock_for(prefix, kOption, own, &reporter);
  std::string token = token_for(read_owner(prefix), own);
  write_owner(lock, prefix, {.token = token, .job_folder = own, .host = host_name(), .process = ::getpid()});
  return {std::move(lock), std::move(token)};
}

}  // namespace

std::optional<PrefixClaim> claim_prefix(const config::TrainOptions& options, const train::SharedStore& store,
                                        Reporter& reporter) {
  if (options.test_io) return std::nullopt;  // it saves nothing
  if (!options.model_prefix) {
    if (!options.benchmark && options.epochs > 0)
      reporter.note("Without --model-prefix no checkpoint is written: the trained weights are gone at the end");
    return std::nullopt;
  }
  refuse_prefix_in_copies(options);
  const Path& prefix = *options.model_prefix;
  const bool is_far = data::is_remote(prefix);
  std::optional<PrefixClaim> claim;
  if (!is_far && !options.dry_run) claim = claim_for(prefix, options.job, reporter);
  settle_earlier_checkpoints(options, store, reporter);
  if (options.dry_run) return std::nullopt;
  train::try_prefix(prefix, store);
  if (claim) {
    for (const Path& file : remove_abandoned_temporaries(prefix.parent_path(), start_of_names(prefix)))
      reporter.note(fmt::format("Removed {}, which a killed process left behind", file.string()));
  }
  return claim;
}

std::optional<FileLock> lock_prefix(const Path& prefix, const std::string& option) {
  if (data::is_remote(prefix)) return std::nullopt;
  prepare_folder(prefix, option);
  return lock_for(prefix, option, "", nullptr);
}

std::optional<FileLock> lock_prefix_again(const config::TrainOptions& options) {
  const bool can_lock =
      options.model_prefix && !data::is_remote(*options.model_prefix) && !options.job.is_on_other_machines();
  return can_lock ? FileLock::take_now(owner_file(*options.model_prefix), kOption) : std::nullopt;
}

}  // namespace dtrain::job
