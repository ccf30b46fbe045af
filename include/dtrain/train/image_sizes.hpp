// One set of weights on images of several sizes. Networks have fixed shapes, so each size has a graph and an executable
// of its own. One of them, the home, holds the state and applies every update. What others compute they contribute in
// the same layout, and they get a copy of the weights when they are next used after an update. So a step's bits depend
// on its images and on the state alone, and neither on the sizes before it nor on the number of workers.
//
// Progressive resizing (progressive_sizes.hpp) moves the home from size to size and judges whole images elsewhere.
// Groups of pictures (`--aspect-groups`) change the size with every step: the loader puts pictures of one group into
// each batch, and says in Batch::shape which. Which step has which group is the loader's order, a function of (seed,
// epoch) and of the sizes of the pictures; EpochPlan::last has the smaller steps that end an epoch, one a group. The
// cursor, ledger, resume and membership count samples of that order, and know nothing of groups.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::train {

// The same network on images of another size. Throws UsageError where its weights depend on the size, or where a layer
// does not fit.
nn::Graph with_image(const nn::Graph& graph, const nn::Shape& image);

// What executables of several sizes share. One thread at a time, as of all executables.
class SizedExecutable : public backend::HostExecutable {
 public:
  // Compiles for a size; `training`: else for evaluations alone.
  using Compile = std::function<std::unique_ptr<backend::Executable>(const nn::Graph& graph, bool training)>;

  void synchronize() override { active_->synchronize(); }
  backend::StepMetrics set_sum(backend::StepSum sum) override { return home_.executable->set_sum(sum); }
  void apply(const backend::Update& update) override;
  using backend::HostExecutable::apply;
  using backend::HostExecutable::evaluate;
  const backend::ModelState& state() const override { return home_.executable->state(); }
  void write_state(backend::ModelState state) override;
  void exchange_average() override;
  std::uint64_t planned_bytes() const override;

 protected:
  SizedExecutable(nn::Graph graph, const nn::Shape& home, Compile compile);
  const nn::Graph& graph() const { return graph_; }
  const nn::Shape& home() const { return home_.image; }
  // Compiles for this size and takes the state there. While nothing is enqueued.
  void move_home(const nn::Shape& image);
  // What computes on images of this size, with the weights of the state. Compiled when a size is met. It is what
  // synchronize() waits for.
  backend::Executable& on(const nn::Shape& image, bool training);

 private:
  struct Sized {
    nn::Shape image;
    std::unique_ptr<backend::Executable> executable;
    bool is_current = false;  // has the weights of the state
  };
  Sized compiled(const nn::Shape& image, bool training) const;
  void outdate();

  const nn::Graph graph_;
  const Compile compile_;
  Sized home_;
  std::vector<Sized> others_;
  backend::Executable* active_;  // what computed last
};

// Compiles by a backend, which must outlive the result.
SizedExecutable::Compile compile_with(const backend::Backend& backend, const backend::CompileOptions& options);

// Trains and evaluates pictures of several sizes, those of use(). The home is the first size.
class GroupedExecutable final : public SizedExecutable {
 public:
  // `images`: all sizes, at least one.
  GroupedExecutable(nn::Graph graph, const std::vector<nn::Shape>& images, Compile compile);

  // The size of the images of the coming batches; one of the constructor's. A shape without pixels, that of an empty
  // batch, changes nothing. While nothing is enqueued.
  void use(const nn::Shape& image);

  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override;
  using backend::HostExecutable::evaluate;
  backend::StepMetrics evaluate(const backend::HostBatch& batch, std::span<const nn::ImageView> views,
                                std::span<float> logits) override;
  backend::Profile profile(const backend::HostBatch& batch, int repeats) override;

 private:
  backend::Executable& present() { return on(images_[present_], true); }

  const std::vector<nn::Shape> images_;
  std::size_t present_ = 0;
};

// Calls use() of an executable that has it.
void use_size(backend::Executable& executable, const nn::Shape& image);

// `backend` must outlive it. Throws what with_image() throws.
std::unique_ptr<GroupedExecutable> compile_grouped(const backend::Backend& backend, const nn::Graph& graph,
                                                   const backend::CompileOptions& options,
                                                   const std::vector<nn::Shape>& images);

}  // namespace dtrain::train
