// The model as a static graph: what is computed, not how. A backend compiles it (dtrain/backend/backend.hpp).
// Letters: n samples, c channels, h height, w width. Shapes are per sample; n is chosen by the backend's caller.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include <dtrain/nn/detection.hpp>

namespace dtrain::nn {

struct Shape {
  int c = 0, h = 1, w = 1;
  std::int64_t size() const { return std::int64_t{c} * h * w; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Input {};

// How a convolution's weight begins. he: see initialize.hpp. dirac: the first in/groups filters hand on their channels,
// the others are Gaussian with variance 1 / (3 fan_in), as large as PyTorch's default. whitening: from images, see
// whiten.hpp; only of a convolution that reads the graph's input, is not grouped, and has twice as many outputs as its
// window has values. As torchvision's detectors begin: uniform has the variance 1 / fan_in; small is Gaussian with
// deviation 0.01; rare is small with a bias at which a sigmoid gives 0.01.
enum class InitialWeight { he, dirac, whitening, uniform, small, rare };

// Cross-correlation, as every framework calls convolution. Weight [out, in/groups, kernel_h, kernel_w]. A frozen weight
// stays as it began: it has no gradient (zeros), and no optimizer moves it; the bias learns. Neighbours in a window are
// `dilation` pixels apart. Zeros lie around the image: pad above and left of it, pad + extra below and right.
struct Convolution {
  int out = 0;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int groups = 1;
  bool bias = false;
  bool frozen = false;
  bool is_dense = false;  // of 1x1: a Dense layer for each pixel, whose weight is [out, in]
  InitialWeight initial = InitialWeight::he;
  int dilation_h = 1, dilation_w = 1;
  int extra_h = 0, extra_w = 0;  // at least -pad

  // Kernels that are written for their shapes compute these alone.
  bool is_plain() const { return dilation_h == 1 && dilation_w == 1 && is_evenly_padded(); }
  bool is_evenly_padded() const { return extra_h == 0 && extra_w == 0; }
};

// Each pixel becomes stride x stride pixels: what PyTorch calls ConvTranspose2d of a kernel that is as large as its
// stride. Weight [in, out, stride, stride], bias [out].
struct TransposedConvolution {
  int out = 0;
  int stride = 2;
};

// Ioffe and Szegedy 2015. Training uses mean and biased variance per channel of the shard, or, synchronized, of all
// shards of the step; running statistics become momentum * running + (1 - momentum) * batch (biased variance, as in
// MXNet). One value has the variance 0 whatever its channel's is, so where a channel has no more the running variance
// counts as that of the batch. fix_gamma holds gamma at 1 without gradient.
struct BatchNorm {
  float epsilon = 2e-5f;
  float momentum = 0.9f;
  bool fix_gamma = false;
  bool synchronized = false;
};

// gelu: x times the share of the normal distribution below x (Hendrycks and Gimpel 2016), not its approximation by
// tanh. silu: x times its sigmoid. hard_sigmoid: (x + 3) / 6 within 0 and 1; hard_swish: x times that (Howard et al.
// 2019).
enum class ActivationKind { relu, tanh, sigmoid, relu6, gelu, silu, hard_swish, hard_sigmoid };
struct Activation {
  ActivationKind kind = ActivationKind::relu;
};

// MXNet's pooling_convention: `valid` floors the output size, `full` ceils it. Average divides by the kernel's size
// with count_include_pad, else by the number of real elements. `global` ignores kernel, stride and pad.
enum class PoolingKind { max, average };
struct Pooling {
  PoolingKind kind = PoolingKind::max;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  bool global = false;
  bool full = false;
  bool count_include_pad = true;
};

// Fully connected: flattens its input in c, h, w order. Weight [out, c*h*w].
struct Dense {
  int out = 0;
  bool bias = true;
};

// Krizhevsky et al. 2012: each value divided by (bias + alpha / size * the sum of the squares of the pixel's `size`
// channels around its own)^beta; channels that do not exist are 0. An odd size.
struct LocalResponseNorm {
  float alpha = 1e-4f;
  float beta = 0.75f;
  float bias = 1;
  int size = 5;
};

struct Flatten {};
struct Add {};  // exactly two inputs of one shape
// Two or more inputs of one height and width: the channels of one follow those of the other.
struct Concat {};
// Two inputs: each channel of the first times the one number that the second [c,1,1] has for it (Hu et al. 2018).
struct Multiply {};

// Zeroes with probability p and divides the rest by 1-p while training; the identity in evaluation. The mask of element
// e of sample s is RandomStream(seed, dropout, ...) keyed by (epoch, sample id, node, e): see backend StepKey.
// whole_samples: element 0 decides for all of a sample (stochastic depth, Huang et al. 2016).
struct Dropout {
  float p = 0.5f;
  bool whole_samples = false;
};

// Multiplies by a fixed number.
struct Scale {
  float factor = 1.0f;
};

// Ba et al. 2016: normalises the channels of each pixel by their own mean and biased variance, in evaluation too.
struct LayerNorm {
  float epsilon = 1e-6f;
};

// Each channel times a gain that learns and begins at `initial` (Touvron et al. 2021).
struct LayerScale {
  float initial = 1e-6f;
};

// What transformers read: tokens are the pixels of a value with one row, [channels, 1, tokens].
// Puts a token that learns before the pixels of an image, row after row.
struct ClassToken {};
// Adds a value that learns to each token.
struct Position {};
// The first pixel alone.
struct FirstToken {};
// Vaswani et al. 2017: the input has queries, keys and values of all heads, in that order, as its channels. The output
// of a head is softmax(queries keys^T / sqrt(channels of a head)) values.
struct Attention {
  int heads = 1;
};

// What p(k), the share of class k among the logits x, is held against. With q = 1 - p, weight w and target t:
// softmax: p of all classes together; the sum over the classes of w t q^focal_gamma (-log p). sigmoid: p(k) of x(k)
// alone, each class a question of its own; the mean over the classes of w m^focal_gamma (-t log p - (1-t) log q), with
// m = p (1-t) + q t. A focal_gamma above 0 counts what is known already for less (Lin et al. 2017).
enum class LossKind { softmax, sigmoid };

// Last node of every graph. Its input is the logits [classes]; the target is (1 - smoothing) on the label and smoothing
// / classes on each class (label included).
struct SoftmaxLoss {
  float label_smoothing = 0.0f;
  LossKind kind = LossKind::softmax;
  float focal_gamma = 0.0f;
  float target_threshold = 1.0f;          // sigmoid, below 1: targets above it become 1, all others 0
  std::vector<float> class_weights = {};  // by label; empty: all 1
  friend bool operator==(const SoftmaxLoss&, const SoftmaxLoss&) = default;
};

using Layer = std::variant<Input, Convolution, BatchNorm, Activation, Pooling, Dense, Flatten, Add, Concat, Multiply,
                           Dropout, Scale, LayerNorm, LayerScale, ClassToken, Position, FirstToken, Attention,
                           SoftmaxLoss, Upsample, Pyramid, KeepLevels, DetectionLoss, TransposedConvolution, Proposals,
                           RegionAlign, KeepRegions, FoundRegions, RegionLoss, LocalResponseNorm>;

// The name of the layer kind as it stands in JSON and messages: "convolution", "batch_norm", ...
const char* layer_kind(const Layer& layer);

bool has_frozen_weight(const Layer& layer);

enum class TensorRole { weight, bias, gamma, beta, running_mean, running_variance };

// A named view into one flat float32 buffer; tensors follow each other without gaps, in the order of the nodes.
struct TensorView {
  std::string name;  // MXNet's: conv0_weight, bn0_gamma, bn0_moving_mean
  std::vector<std::int64_t> shape;
  TensorRole role = TensorRole::weight;
  std::int64_t offset = 0;  // in elements
  std::int64_t size = 0;
  // Weights and gammas decay, biases and betas do not (MXNet's wd_mult rule).
  bool decays() const { return role == TensorRole::weight || role == TensorRole::gamma; }
};

struct Node {
  std::string name;
  Layer layer;
  std::vector<int> inputs;  // indices of earlier nodes
  Shape output;
  std::vector<int> parameters;  // indices into Graph::parameters, in the order weight, bias | gamma, beta
  std::vector<int> statistics;  // indices into Graph::statistics, in the order mean, variance
  // False: its parameters stay as they are, and a batch norm computes with its running statistics in training too.
  bool learns = true;
  bool learns_elsewhere = false;  // another parameter server moves it; `learns` is false here
};

// Whether the node's parameter `which` stays as it began: it has no gradient (zeros), and no optimizer moves it.
bool is_held(const Node& node, std::size_t which);
// The momentum of a batch norm's running statistics; 1 where they stay.
float statistics_momentum(const Node& norm);

struct Graph {
  std::string name;                    // "resnet-20", for people
  std::vector<Node> nodes;             // topological; nodes[0] is the only Input, nodes.back() the only loss
  std::vector<TensorView> parameters;  // views of the flat parameter buffer (also: gradients, each optimizer slot)
  std::vector<TensorView> statistics;  // views of the flat buffer of batch-norm running statistics
  std::int64_t parameter_count = 0;
  std::int64_t statistic_count = 0;
  const Shape& input() const { return nodes.front().output; }
  int classes() const { return nodes.back().output.c; }
};

// Appends nodes, infers shapes, lays out the buffers. Every call returns the new node's index.
// Throws UsageError naming the node when two have one name, when a layer's numbers make no sense, or when shapes do not
// fit (a kernel larger than its padded input, Add of two shapes), or when a layer that takes no regions reads those of
// a detector. After a throw the builder is of no more use.
class GraphBuilder {
 public:
  GraphBuilder(std::string graph_name, Shape input, std::string input_name = "data");
  int input() const { return 0; }
  int add(std::string name, Layer layer, std::vector<int> inputs);
  // Throws std::out_of_range for an index that add() never returned.
  const Shape& shape(int node) const { return graph_.nodes.at(static_cast<std::size_t>(node)).output; }
  const Layer& layer(int node) const { return graph_.nodes.at(static_cast<std::size_t>(node)).layer; }
  // Ends with SoftmaxLoss on `logits`, a list of at least 2 classes; the builder is empty afterwards.
  // Throws UsageError naming a node whose output nothing uses, and one of a detector whose image is not the input's or
  // whose classes are not those of the loss.
  Graph finish(int logits, float label_smoothing = 0.0f, std::string name = "softmax");
  Graph finish(int logits, SoftmaxLoss loss, std::string name);
  // Ends with a detector's loss.
  Graph finish(std::vector<int> inputs, DetectionLoss loss, std::string name = "detections");
  Graph finish(std::vector<int> inputs, RegionLoss loss, std::string name = "detections");

 private:
  int append_node(std::string name, Layer layer, std::vector<int> inputs);
  Graph finish();

  Graph graph_;
  std::unordered_set<std::string> names_;
};

// Of a classifier. Throws UsageError for a detector.
const SoftmaxLoss& loss_of(const Graph& graph);
// nullptr: the graph is a classifier.
const Detections* detection_of(const Graph& graph);
// The size of a detector's smallest anchors in pixels of the image; 0 for other graphs.
int anchor_size(const Graph& graph);
// Of a detector: what its results have at least as a score.
void set_score_threshold(Graph& graph, float threshold);
// Floats that an evaluation gives for one sample: a classifier's logits, or what a detector found.
std::int64_t result_size(const Graph& graph);
// The parts of the loss that are reported one by one; none of a classifier's.
std::span<const char* const> loss_parts(const Graph& graph);
// Throws UsageError for a loss that finish() would refuse.
void set_loss(Graph& graph, SoftmaxLoss loss);

// Multiply-adds of one sample's forward pass in convolutions and dense layers.
std::int64_t multiply_adds(const Graph& graph);

}  // namespace dtrain::nn
