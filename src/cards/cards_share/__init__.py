"""Files that users edit (models, config, launch, worlds), where pip installed CARDS."""
