// From a graph to programs. Operations know only the model and the places of tensors, so programs outlive the lowering.
#pragma once

#include <type_traits>
#include <utility>

#include <dtrain/base/error.hpp>

#include "../fusion.hpp"
#include "../node_access.hpp"
#include "model.hpp"
#include "parts.hpp"

namespace dtrain::backend::cuda {

// Fills Binding::contribution, with EventMarker{k} behind part k of parts_of(model). `model` must outlive the program.
Program lower_training(const Model& model);
// Fills Binding::logits and Binding::metrics; batch norms use the running statistics. Likewise.
Program lower_evaluation(const Model& model);

inline std::int64_t rows_of(const nn::Shape& shape, int n) { return std::int64_t{n} * shape.h * shape.w; }
// Values lie in the order h, w, c; what is flattened is in the order c, h, w.
inline bool is_flat(const nn::Shape& shape) { return std::int64_t{shape.h} * shape.w == 1; }
// The most that poolings compute at once: they number their threads, one for each pack of the input, in 32 bits.
std::int64_t most_pooled_samples(const nn::Graph& graph);
PoolShape pool_shape(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out, int n);

// Memory of a sum over rows: what the parts leave, and what is left when these are folded.
struct Sums {
  TensorId parts = kNoTensor, folded = kNoTensor;
  int width = 0;
};

// Memory of detectors' kernels: kernels/detection.
struct SelectTensors {
  TensorId counts = kNoTensor, totals = kNoTensor, state = kNoTensor, picked = kNoTensor, picks = kNoTensor;
  void touch(std::vector<TensorId>& all) const { all.insert(all.end(), {counts, totals, state, picked, picks}); }
  SelectRoom at(const Binding& b) const {
    return {b.tensor<std::int32_t>(counts), b.tensor<std::int32_t>(totals), b.tensor<SelectState>(state),
            b.tensor<std::int32_t>(picked)};
  }
};
// Boxes in groups, ranked, and the best `most` of all groups.
struct SuppressTensors {
  std::int32_t groups = 0, size = 0, most = 0;
  TensorId given = kNoTensor, ranked = kNoTensor, bits = kNoTensor, dropped = kNoTensor, kept_before = kNoTensor,
           best = kNoTensor, found = kNoTensor;
  void touch(std::vector<TensorId>& all) const {
    all.insert(all.end(), {given, ranked, bits, dropped, kept_before, best, found});
  }
  BoxGroups in(int n) const { return {n, groups, size}; }
};
// Terms of a detector's loss, in the order of nn::loss_parts().
struct TermTensors {
  std::vector<TensorId> of;
  std::vector<std::int64_t> sizes;  // of a sample
};

class Lowering {
 public:
  explicit Lowering(const Model& model);
  Program training();
  Program evaluation();

 private:
  using Gradients = std::vector<TensorId>;
  // What reaches a batch norm's output from behind: see NormIncoming.
  struct Incoming {
    TensorId dy, dy2 = kNoTensor, passed = kNoTensor;
    bool relu = false;
    template <typename T, bool Gelu = false>
    NormIncoming<T, Gelu> at(const Binding& b) const {
      return {b.tensor<T>(dy), b.tensor<T>(dy2), b.tensor<std::uint8_t>(passed), relu};
    }
  };

  const nn::Node& node(int index) const { return model_.node(index); }
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  TensorId value(int index) const { return values_[at(index)]; }
  bool wants_gradient(int index) const { return fusion_.needs_gradient[at(index)]; }

  TensorId new_tensor(const nn::Shape& shape);
  TensorId new_value(int index, const nn::Shape& shape);
  std::int64_t packs_in_row(const nn::Shape& shape) const;
  TensorId new_bits(const nn::Shape& shape);  // see NormApply::passed
  void alias(int index, int of);
  TensorId gradient_tensor(int index) { return new_tensor(shapes_[at(index)]); }
  Sums new_sums(const nn::Shape& shape, int kinds) { return new_sums(shape, kinds, packs_in_row(shape)); }
  Sums new_sums(const nn::Shape& shape, int kinds, std::int64_t packs);

  // bind(T{}, binding, emit) calls emit(work) for each call; T is what values are stored as.
  template <typename Bind>
  void add(int of, const char* part, std::vector<TensorId> touches, Bind bind) {
    add(of, part, std::move(touches), {}, std::move(bind));
  }
  template <typename Bind>
  void add(int of, const char* part, std::vector<TensorId> touches, std::vector<TensorId> scratch, Bind bind) {
    const std::string name = node(of).name + part;
    program_.add({.name = name,
                  .kind = nn::layer_kind(node(of).layer),
                  .shape = node(of).output,
                  .touches = std::move(touches),
                  .scratch = std::move(scratch),
                  .bind = [name, bind, dtype = model_.dtype](const Binding& b, std::vector<Call>& calls) {
                    const auto emit = [&](auto work) { calls.push_back({name, work_of(work)}); };
                    with_type(dtype, [&](auto type) { bind(type, b, emit); });
                  }});
  }

  void forward();
  // Whether the statistics of a norm are one operation with what is made with them.
  bool is_one_operation(int norm) const;
  void batch_statistics(int norm);
  void fixed_norm(int norm);
  void running_coefficients();
  void forward_norm(int norm, int output);
  void forward_norm_pooling(int norm, int output);
  // The batch norm that a group computes of its residual, or -1: see NormGroup::added_by_norm.
  int norm_to_add(const NormGroup& group) const;
  void forward_node(int index);
  void load_images(int index);
  void whiten_images(int index);
  TensorId reorder(int of, const char* part, TensorId x, TensorId y, const nn::Shape& shape, bool to_channels_first);
  void flatten(int index, int source);
  TensorId product_input(int index);
  // The batch norm with a ReLU that made the input of a convolution for it alone, or -1.
  int norm_before(int index) const;
  // What it made it of.
  TensorId normed_from(int norm) const { return norm < 0 ? kNoTensor : value(node(norm).inputs[0]); }
  void forward_product(int index);
  // The layer whose bias an activation adds to what it reads, or -1.
  int biased_input(int activation) const;
  TensorId new_places(int index, std::size_t bytes);  // of a max pooling; kNoTensor where there is no backward pass
  void forward_pooling(int index, const nn::Pooling& layer);
  TensorId add_up(int of, const char* part, TensorId a, TensorId b, const nn::Shape& shape);
  void concat(int index);
  void copy_channels(int index, const char* part, TensorId x, TensorId y, const nn::Shape& shape, ChannelRange source,
                     ChannelRange target);
  void multiply(int index, const char* part, TensorId x, TensorId y);
  void scale(int index, const char* part, const nn::Scale& layer, TensorId x, TensorId y);
  void drop(int index, const char* part, const nn::Dropout& layer, TensorId x, TensorId y);

  // Layers of transformers and of networks that are built like them: layers/token_layers.cpp.
  void forward_token_layer(int index);
  void layer_norm(int index, const nn::LayerNorm& layer);
  void scale_channels(int index, const char* part, TensorId x, TensorId y);
  void copy_tokens(int index, const char* part, TensorId x, TensorId y, const nn::Shape& from, const nn::Shape& to,
                   bool skips_first);
  void attend(int index, const nn::Attention& layer);
  TensorId new_floats(std::int64_t of_sample);  // of each sample
  void backward_layer_norm(int index, TensorId dy);
  void backward_layer_scale(int index, TensorId dy);
  void backward_class_token(int index, TensorId dy);
  void backward_position(int index, TensorId dy);
  void backward_first_token(int index, TensorId dy);
  void backward_attention(int index, const nn::Attention& layer, TensorId dy);
  // The sums over the samples of their first elements.
  void token_sums(int index, TensorId dy, std::int64_t size);

  // Layers of detectors: layers/detection_layers.cpp, region_layers.cpp. False: the node is none of them.
  bool forward_detection_layer(int index);
  bool backward_detection_layer(int index, TensorId dy);
  void keep_level_pixels(int index, const char* part, const nn::Levels& levels, TensorId x, TensorId y);
  void keep_region_pixels(int index, const char* part, int side, TensorId x, TensorId y);
  void join_levels(int index);
  void backward_pyramid(int index, TensorId dy);
  void spread(int index);  // a transposed convolution
  void backward_spread(int index, TensorId dy);
  bool forward_region_layer(int index);
  TensorId new_regions(int index);  // its value: floats whatever the type of values
  void propose(int index, const nn::Proposals& layer);
  void draw_regions(int index, const nn::Proposals& layer, const SuppressTensors& boxes, TensorId y);
  void align_regions(int index, const nn::RegionAlign& layer);
  void backward_align_regions(int index, const nn::RegionAlign& layer, TensorId dy);
  void find_regions(int index, const nn::FoundRegions& layer);
  void keep_objects(int index, const nn::FoundRegions& layer, TensorId regions, TensorId y);
  TensorId new_room(std::int64_t bytes_of_sample);
  SelectTensors new_select(const Segments& segments);
  SuppressTensors new_suppression(std::int32_t groups, std::int32_t size, std::int32_t most);
  // What a detector is worth and what it found: layers/detection_losses.cpp.
  void detection_loss();
  void anchor_loss(const nn::DetectionLoss& layer);
  void region_loss(const nn::RegionLoss& layer);
  TensorId match_anchors(const AnchorGrid& grid, const MatchRule& rule);
  TensorId head_gradient(std::size_t input);  // of the last node, handed on where it is wanted
  void drawn_anchor_loss(const AnchorGrid& grid, TensorId matches, TermTensors& terms);
  TensorId region_head_loss(const nn::RegionLoss& layer, TermTensors& terms);
  void mask_loss(const nn::RegionLoss& layer, TensorId counts, TermTensors& terms);
  void count_terms(const TermTensors& terms);
  void detection_results();
  void found_objects(const nn::DetectionLoss& layer);
  void found_regions(const nn::RegionLoss& layer);

  // The loss by the logits (gradient: kNoTensor for none), and what is counted: 4 floats where target(binding) says.
  void loss(TensorId gradient, const nn::SoftmaxLoss& of, float* (*target)(const Binding&, const nn::Graph&));
  void classifier_loss();
  void backward();
  void backward_at(int index);
  // The parts of the contribution that are final now that `node` is done.
  void finish_parts(int node);
  void pass_on(int to, TensorId gradient) { gradients_[at(to)].push_back(gradient); }
  Gradients gradient_parts(int index, std::size_t parts);
  void backward_norm(int norm, int output);
  // What the sums of a norm's gradient are of. `kept`: see NormGradientSums. `gelu`: between the norm and what comes
  // in.
  struct NormTotals {
    int norm;
    nn::Shape shape;  // of what comes in
    TensorId x;
    Incoming incoming;
    TensorId kept;
    bool gelu;
    Sums sums;
    std::vector<TensorId> touches() const { return {x, incoming.dy, incoming.dy2, incoming.passed, kept, sums.folded}; }
    template <typename T, bool Gelu>
    NormGradientTotals<T, Gelu> bound(const Model& model, const Binding& b) const;
  };
  void norm_gradient_sums(const NormTotals& totals);
  // What a norm's dx is made of, and where; `incoming`: by what, once the sums are made.
  struct NormDx {
    int norm;
    nn::Shape shape;
    TensorId x;
    Incoming incoming;
    TensorId addend, dx;
    template <typename T>
    NormGradient<T> bound(const Model& model, const Binding& b) const;
  };
  NormDx dx_of(const NormTotals& totals, const Incoming& incoming);
  void norm_backward(const NormTotals& totals, const Incoming& incoming);
  // Without sums: of a norm that does not learn.
  void norm_gradient(const NormTotals& totals, const Incoming& incoming);
  void norm_pooling_gradient(int norm, const Incoming& incoming);
  TensorId take_gradient(int node);  // one that reached the node on another way, or kNoTensor
  void backward_node(int index);
  void backward_concat(int index, TensorId dy);
  void backward_multiply(int index, TensorId dy);
  void backward_pooling(int index, const nn::Pooling& layer, TensorId dy, TensorId dx);
  void backward_product(int index, TensorId dy);
  void weight_gradient(int index, TensorId dy);
  // The norm that made what a convolution reads, and from what.
  struct NormBefore {
    int norm = -1;
    TensorId from = kNoTensor;
  };
  void weight_gradient_of(int index, TensorId x, TensorId dy, const NormBefore& before);
  void bias_gradient(int index, TensorId dy);
  void whitening_gradient(TensorId dy);  // by what first_layer.activation leaves

  const Model& model_;
  const nn::Graph& graph_;
  const Fusion fusion_;
  const std::vector<ContributionPart> parts_;
  bool training_ = true;
  Program program_;
  std::vector<TensorId> values_;      // by node
  std::vector<TensorId> places_;      // by node: of the largest elements of a max pooling
  std::vector<TensorId> passed_;      // by batch norm: what the ReLU let pass, where backward cannot tell from x
  std::vector<TensorId> largest_;     // by batch norm: see NormMaxPool
  std::vector<TensorId> kept_;        // by node: moments of a layer norm, shares of an attention, taps of regions
  std::vector<nn::Shape> shapes_;     // by node: as the value lies in memory
  std::vector<Gradients> gradients_;  // by node: parts whose sum is the gradient by its value
};

// What a norm made of x; nothing where norm is -1.
template <typename T>
NormedInput normed_input(const Model& model, const Binding& b, int norm, TensorId x, TensorId y) {
  if (norm < 0) return {};
  return {b.tensor<T>(x), model.norm_coefficients(b, norm).factors<T>(), b.tensor<T>(y)};
}

// What is added to the value of a convolution or dense layer where it is read; nothing where -1.
inline ChannelBias late_bias(const Model& model, const Binding& b, int product) {
  if (product < 0) return {};
  return {b.parameters + model.parameter(product, 1), model.node(product).output.c};
}

// Calls work(std::true_type) or work(std::false_type).
template <typename Do>
void with_bool(bool value, Do work) {
  value ? work(std::true_type{}) : work(std::false_type{});
}

// Calls work(Place{}) with what says where in the windows of a max pooling an element is: see kNowhere.
template <typename Do>
void with_place(const PoolShape& shape, Do work) {
  std::int64_t{shape.h.kernel} * shape.w.kernel <= kMostPlacesOfBytes ? work(std::uint8_t{}) : work(std::int32_t{});
}

// `add` leaves the sums of the parts, `finish` reads the folded ones.
template <typename Add, typename Finish>
FoldedSums<Add, Finish> folded(const Binding& b, const Sums& sums, const Add& add, const Finish& finish) {
  const FoldParts fold{b.tensor<float>(sums.parts), b.tensor<float>(sums.folded), add.cut, sums.width};
  return {add, fold, finish, b.tickets};
}

}  // namespace dtrain::backend::cuda
