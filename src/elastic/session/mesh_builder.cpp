// mesh_builder.hpp explains the thread. mutex_ is never held while a mesh is built or `done` runs, so `done` may take
// the session's lock, and the session may call build() while it holds that lock.
#include "mesh_builder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>

namespace dtrain::elastic {
namespace {

// Each other rank needs a connection at least. Those of the mesh that failed are closed by now.
bool lacks_descriptors(const comm::MeshPlan& plan) { return free_descriptors() + 1 < plan.ranks.size(); }

}  // namespace

MeshBuilder::MeshBuilder(MeshMaker make_mesh, std::chrono::milliseconds deadline, Done done)
    : make_mesh_(std::move(make_mesh)),
      deadline_(deadline),
      done_(std::move(done)),
      thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

MeshBuilder::~MeshBuilder() {
  {
    const MutexLock lock(mutex_);
    wanted_.reset();
    cancel_.request_stop();
  }
  thread_.request_stop();
  thread_.join();
}

void MeshBuilder::build(comm::MeshPlan plan) {
  const MutexLock lock(mutex_);
  cancel_.request_stop();
  wanted_ = std::move(plan);
  changed_.notify_all();
}

void MeshBuilder::cancel_through(Generation generation) {
  const MutexLock lock(mutex_);
  if (wanted_ && wanted_->generation <= generation) wanted_.reset();
  if (under_way_ <= generation) cancel_.request_stop();
}

void MeshBuilder::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    comm::MeshPlan plan;
    std::stop_token cancel;
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() DTRAIN_REQUIRES(mutex_) { return wanted_.has_value(); })) return;
      plan = std::move(*std::exchange(wanted_, std::nullopt));
      under_way_ = plan.generation;
      cancel_ = std::stop_source();
      cancel = cancel_.get_token();
    }
    build_one(plan, cancel);
  }
}

void MeshBuilder::build_one(const comm::MeshPlan& plan, std::stop_token cancel) {
  Result result;
  try {
    result.mesh = make_mesh_(plan, deadline_, cancel);
  } catch (const PeerLost& error) {
    result.failure = error.what();
    result.is_local = lacks_descriptors(plan);
    if (result.is_local) {
      result.failure += fmt::format(", and this process has no file descriptors left for {} other ranks ({})",
                                    plan.ranks.size() - 1, hint_without_descriptors(EMFILE));
    }
  } catch (const std::exception& error) {
    result.failure = error.what();
    result.is_local = true;
  }
  if (!cancel.stop_requested()) done_(plan.generation, std::move(result));
}

}  // namespace dtrain::elastic
