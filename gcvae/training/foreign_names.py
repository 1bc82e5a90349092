"""Names of settings in other tools, for which error messages suggest the name in gcvae."""

from __future__ import annotations

BESIDE_SETTINGS = ("preset", "seed", "device")
"""Arguments of `fit` that are not settings."""
FOREIGN_NAMES: dict[str, str] = {
    foreign: own
    for own, names in {
        "max_passes": "epoch epochs n_epoch n_epochs num_epochs nb_epoch max_epoch max_epochs "
        "train_epochs passes n_passes",
        "max_steps": "steps n_steps num_steps train_steps training_steps iterations n_iterations "
        "num_iterations iters n_iter max_iter max_iterations updates n_updates",
        "batch_size": "batch batchsize bs minibatch minibatch_size mini_batch_size",
        "learning_rate": "lr lrate step_size eta0 learning_rate_init generator_lr",
        "weight_decay": "l2 l2scale l2_scale l2_penalty generator_decay",
        "hidden_dropout": "dropout dropout_rate dropout_p p_dropout",
        "d_latent": "latent latent_dim latent_dims latent_size n_latent z_dim z_size "
        "embedding_dim embedding_size n_latents",
        "d_hidden": "hidden hidden_dim hidden_dims hidden_size hidden_sizes hidden_units n_hidden "
        "hidden_layer_sizes compress_dims decompress_dims layer_sizes width",
        "n_hidden_layers": "layers n_layers num_layers num_hidden_layers hidden_layers depth",
        "activation": "activation_function nonlinearity",
        "n_components": "components n_mixtures num_mixtures mixture_components n_gaussians",
        "patience_steps": "patience early_stopping early_stopping_patience n_iter_no_change",
        "min_improvement": "min_delta",
        "held_out_share": "validation_split validation_fraction validation_size val_split "
        "val_size val_fraction test_size holdout",
        "gradient_limit": "grad_clip gradient_clip clip_grad clip_grad_norm gradient_clip_val "
        "max_grad_norm clipnorm",
        "gradient_memory": "beta2 beta_2 adam_beta2",
        "averaging": "ema ema_decay",
        "kl_warm_up": "warmup warm_up kl_warmup kl_annealing beta_warmup n_epochs_kl_warmup",
        "seed": "random_state random_seed rng",
        "device": "cuda gpu use_gpu enable_gpu accelerator",
    }.items()
    for foreign in names.split()
}
"""Maps names of settings in other tools to names of settings in gcvae."""
EXPLAINED = {
    "max_passes": "an epoch is a pass over the rows; max_passes limits those where max_steps, which"
    " counts updates, is null, as in the presets default, fast and gcvae",
    "preset": "the preset stands beside the settings",
    "seed": "the seed stands beside the settings",
    "device": "the device stands beside the settings: auto, cpu or cuda",
}
"""Explanations that error messages add to some suggested names."""
